/* SPDX-License-Identifier: MIT */
/* A run in the lab as a bundle like any other: accesses to shared memory with values, synchronisations, the failure
 * with the stacks of all threads. */
#ifndef ETCH_COLLECTOR_LAB_RECORD_H
#define ETCH_COLLECTOR_LAB_RECORD_H

#include "collector/lab_run.h"
#include "collector/record.h"

/* Runs the program once more and records the run into the file `bundle`. `hangs`: the run is expected to hang, and is
 * ended soon after its last step. Sets `result` as etch_lab_run() does. Returns 0, or -1 with `err` set. */
int etch_lab_record(struct etch_lab_result *result, const struct etch_lab_request *request, bool hangs,
                    const char *bundle, struct etch_error *err);

/* Records a run of the lab in this process, with this process's own input and output. `options` has everything that is
 * not of the lab. Sets `summary` as etch_record() does. Returns 0, or -1 with `err` set. */
int etch_lab_record_here(struct etch_lab_result *result, const struct etch_lab_request *request,
                         const struct etch_record_options *options, struct etch_record_summary *summary,
                         struct etch_error *err);

#endif
