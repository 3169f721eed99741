/* SPDX-License-Identifier: MIT */
/* The lab build of a program. etch makes it at the first use, and keeps it. */
#ifndef ETCH_DIAGNOSE_LAB_TWIN_H
#define ETCH_DIAGNOSE_LAB_TWIN_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct etch_lab_twin {
    char path[PATH_MAX];
    uint8_t program[16]; /* of the program's file and of its own libraries */
    char note[500];      /* what a user should know about the build; mostly empty */
    bool made;           /* by this call */
};

/* Finds or makes the lab build of `program`. Returns 0, or -1 with `err` set. */
int etch_lab_twin(struct etch_lab_twin *twin, const char *program, struct etch_error *err);

/* True if `path` is a lab build of `program`, which may have been made with another runtime. */
bool etch_lab_twin_is_of(const char *path, const char *program);

/* The instructions of a lab build that were seen to share memory, ETCH_LAB_SITES words. They are kept beside the lab
 * build. Reading returns false if none are known. Keeping them is worth no error. */
bool etch_lab_sites_read(const struct etch_lab_twin *twin, uint64_t *sites);
void etch_lab_sites_keep(const struct etch_lab_twin *twin, const uint64_t *sites);

#endif
