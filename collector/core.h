/* SPDX-License-Identifier: MIT */
/* Cores: a bundle of a core alone, so that a program that nobody recorded has a sketch too. */
#ifndef ETCH_COLLECTOR_CORE_H
#define ETCH_COLLECTOR_CORE_H

#include "collector/record.h"

struct etch_core_request {
    const char *core;    /* the file */
    const char *program; /* that is said to have run */
    const char *output;  /* the bundle */
    const char *policy;  /* as in etch_policy_find(); NULL: as it finds it */
};

/* Makes a bundle of a core: program, images, threads, the failure with stacks and registers, the outcome. There is no
 * control flow. Losses and notes are in `summary`. Returns 0, or -1 with `err` set: no core, a core of another
 * program. */
int etch_core_bundle(const struct etch_core_request *request, struct etch_record_summary *summary,
                     struct etch_error *err);

#endif
