/* SPDX-License-Identifier: MIT */
/* A schedule of the lab as a file, and the texts about a run in the lab. */
#ifndef ETCH_CLI_LAB_FILE_H
#define ETCH_CLI_LAB_FILE_H

#include "collector/lab_explore.h"
#include "collector/lab_script.h"
#include "diagnose/lab_cause.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct etch_lab_file {
    char exe[PATH_MAX];
    uint8_t program[16];     /* MD5 of the file `exe` */
    ETCH_ARRAY(char *) argv; /* ends with a NULL that is not counted */
    char input[PATH_MAX];    /* empty: none */
    bool real_time, no_heap_check;
    enum etch_lab_memory memory;
    uint32_t misuse; /* enum etch_lab_misuse */
    struct etch_lab_schedule schedule;
    struct etch_lab_script script; /* the same by names; no orders: there is none */
    bool scripted;                 /* `script` was enforced in the run itself */
};

int etch_lab_file_write(const char *path, const struct etch_lab_file *file, struct etch_error *err);
int etch_lab_file_read(struct etch_lab_file *file, const char *path, struct etch_error *err);
void etch_lab_file_release(struct etch_lab_file *file);

/* Prints the line of each thread at the end, by the line table of the lab build. */
void etch_lab_print_threads(const struct etch_lab_result *result, const char *twin, FILE *out);

/* Prints where a repeated run left the run that it repeats, if it did. */
void etch_lab_print_desync(const struct etch_lab_result *result, const char *twin, FILE *out);

/* Prints how the orders of a script were kept, if they were not all kept. */
void etch_lab_print_unkept(const struct etch_lab_result *result, const struct etch_lab_script *script, const char *twin,
                           FILE *out);

/* Prints the shortened schedule, and the orders that the failure needs with the counts of their experiments. */
void etch_lab_print_cause(const struct etch_lab_cause *cause, const char *twin, FILE *out);

#endif
