/* SPDX-License-Identifier: MIT */
/* A schedule of the lab as a file, and what a run in the lab came to, in words. */
#ifndef ETCH_CLI_LAB_FILE_H
#define ETCH_CLI_LAB_FILE_H

#include "collector/lab_cause.h"
#include "collector/lab_explore.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct etch_lab_file {
    char exe[PATH_MAX];
    uint8_t program[16];     /* MD5 of it */
    ETCH_ARRAY(char *) argv; /* NULL behind the last, not counted */
    char input[PATH_MAX];    /* empty: none */
    bool real_time, no_heap_check;
    uint32_t misuse; /* enum etch_lab_misuse */
    struct etch_lab_schedule schedule;
};

int etch_lab_file_write(const char *path, const struct etch_lab_file *file, struct etch_error *err);
int etch_lab_file_read(struct etch_lab_file *file, const char *path, struct etch_error *err);
void etch_lab_file_release(struct etch_lab_file *file);

/* Where each thread stood at the end, by the lines of the lab build. */
void etch_lab_print_threads(const struct etch_lab_result *result, const char *twin, FILE *out);

/* The shortened schedule and the orders that the failure needs, each with how often it was tried. */
void etch_lab_print_cause(const struct etch_lab_cause *cause, const char *twin, FILE *out);

#endif
