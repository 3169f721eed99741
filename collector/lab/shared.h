/* SPDX-License-Identifier: MIT */
/* Private to run.c and record.c: the parts of a run that a recorded run has too. */
#ifndef ETCH_COLLECTOR_LAB_SHARED_H
#define ETCH_COLLECTOR_LAB_SHARED_H

#include "collector/lab_run.h"

#include <sys/types.h>

/* Makes the shared memory and fills in the request. Returns its descriptor, or -1 with `err` set. */
int etch_lab_share(struct etch_lab_shared **shared, const struct etch_lab_request *request, struct etch_error *err);

/* In the child: the same addresses in every run, and the run's standard input and output. */
void etch_lab_settle_in(const struct etch_lab_request *request);

/* Says how the run ended, from the program's status and from the shared memory. */
void etch_lab_judge(struct etch_lab_result *result, int status, bool killed);

/* Asks the request's own judge about a run that ended by itself. */
void etch_lab_check(struct etch_lab_result *result, const struct etch_lab_request *request, int status);

/* Sets `err` and returns -1 if the run ended because the program needs more of something than the lab has; else 0. */
int etch_lab_refuse(uint32_t outcome, const char *program, struct etch_error *err);

/* The started program waits for a debugger: runs gdb to its end, and ends the program. Returns 0, or -1 with `err` set.
 */
int etch_lab_debug(pid_t pid, const struct etch_lab_request *request, struct etch_lab_shared *shared,
                   struct etch_error *err);

#endif
