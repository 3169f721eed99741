/* SPDX-License-Identifier: MIT */
/* Failing and passing runs in the lab, recorded: what a sketch compares. */
#ifndef ETCH_DIAGNOSE_LAB_RUNS_H
#define ETCH_DIAGNOSE_LAB_RUNS_H

#include "diagnose/lab_cause.h"

struct etch_lab_runs {
    uint32_t failing, passing; /* bundles that were written: failing-N.etch, passing-N.etch, from 1 */
};

/* Records runs of the program into `folder`: schedules from seeds, the failing schedule if none of these fails, and the
 * failing schedule with an order of `cause` turned round if none of these passes. `cause` may be NULL. `learnt` are
 * the instructions that share memory, as far as they are known; NULL: none are. `explore` is the search
 * that found the failure: it names the program to run, and says which failures are the same. Once the time of `budget`
 * is over, only the found schedule is recorded, if no run has failed yet; NULL: no limit. Returns 0, or -1 with `err`
 * set. */
int etch_lab_runs_record(struct etch_lab_runs *runs, const struct etch_lab_found *found,
                         const struct etch_lab_cause *cause, const uint64_t *learnt,
                         const struct etch_lab_explore *explore, const struct etch_lab_budget *budget,
                         const char *folder, struct etch_error *err);

#endif
