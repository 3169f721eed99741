/* SPDX-License-Identifier: MIT */
/* A run of a diagnosis in the lab: the number of the run is its schedule. */
#ifndef ETCH_DIAGNOSE_LAB_RUNNER_H
#define ETCH_DIAGNOSE_LAB_RUNNER_H

#include "collector/lab_record.h"

/* The instructions that share memory, and the operations of each thread. All runs share these tables, and add to them.
 */
struct etch_lab_learnt {
    uint64_t sites[ETCH_LAB_SITES], expected[ETCH_LAB_THREADS];
};

/* Records run `number` of the lab build `twin`, in this process. Returns 0, or -1 with `err` set. */
int etch_lab_runner_record(const char *twin, int64_t number, struct etch_lab_learnt *learnt,
                           const struct etch_record_options *options, struct etch_record_summary *summary,
                           struct etch_error *err);

#endif
