/* SPDX-License-Identifier: MIT */
/* Reads two sets of recordings and compares them: for etch report --diff and etch bench. */
#ifndef ETCH_CLI_COMPARING_H
#define ETCH_CLI_COMPARING_H

#include "report/compare.h"

/* The recordings of a set. */
struct etch_run_files {
    ETCH_ARRAY(char *) v;
};

/* A recording, or a folder: all its files NAME.etch, by name. Returns 0, or -1 with `err` set. */
int etch_run_files_find(struct etch_run_files *files, const char *path, struct etch_error *err);
void etch_run_files_release(struct etch_run_files *files);

/* Returns NULL with `err` set. `apart`: see compare.h. */
struct etch_comparison *etch_compare_files(const struct etch_run_files *a, const struct etch_run_files *b, bool apart,
                                           const struct etch_profile_options *options, struct etch_error *err);

#endif
