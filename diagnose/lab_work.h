/* SPDX-License-Identifier: MIT */
/* Private to lab_*.c of the experiments: the failing schedule under experiment, and one run of it. */
#ifndef ETCH_DIAGNOSE_LAB_WORK_H
#define ETCH_DIAGNOSE_LAB_WORK_H

#include "diagnose/lab_cause.h"

typedef ETCH_ARRAY(struct etch_lab_segment) etch_lab_segments;

struct etch_lab_work {
    struct etch_lab_cause *cause;
    const struct etch_lab_schedule *failing;
    struct etch_lab_request request;
    uint64_t site; /* where the thread was that failed; 0: it hangs, all of them matter */
    struct etch_lab_event *events;
    uint32_t n_events;
    struct etch_lab_event *cured; /* of the last run that passed with an order turned round */
    uint32_t n_cured;
    struct etch_lab_events passing; /* a run that passed, of the search */
    struct etch_lab_event *nearest; /* a run that follows the failing schedule for long, and passes */
    uint32_t n_nearest;
    bool learns; /* ends early if runs show points that were not known */
    struct etch_lab_budget budget;
    struct etch_lab_observer observer;
    struct etch_error *err;
};

/* UNKEPT: the orders could not be enforced, so that the run shows nothing. */
enum etch_lab_verdict {
    ETCH_LAB_BROKEN = -1,
    ETCH_LAB_PASSED,
    ETCH_LAB_FAILED,
    ETCH_LAB_FAILED_OTHERWISE,
    ETCH_LAB_NOT_KEPT
};

/* Runs once. The caller releases `r` unless the verdict is ETCH_LAB_BROKEN. */
enum etch_lab_verdict etch_lab_experiment_once(struct etch_lab_work *w, struct etch_lab_result *r);

bool etch_lab_work_is_over(const struct etch_lab_work *w);

/* The time is up, whatever the number of runs. */
bool etch_lab_work_is_late(const struct etch_lab_work *w);

/* The events of the shortened failing schedule. */
struct etch_lab_events etch_lab_work_events(const struct etch_lab_work *w);

/* Copies the events of a run. False when memory is short. */
bool etch_lab_work_keep(struct etch_lab_event **events, uint32_t *n_events, const struct etch_lab_result *r);

/* Adds a run with an order turned round, or with orders enforced, to the counts. */
void etch_lab_count_add(struct etch_lab_count *c, enum etch_lab_verdict verdict);

void etch_lab_work_report(const struct etch_lab_work *w, const struct etch_lab_order *order,
                          const struct etch_claim *claim, enum etch_lab_verdict verdict);

/* Leaves segments of the failing schedule out as long as the program fails in the same way. Returns 1, 0 if the
 * schedule does not fail again, or -1 with the error set. */
int etch_lab_shorten(struct etch_lab_work *w, etch_lab_segments *shortest);

/* Looks for the run that passes and is nearest to the failing schedule. Returns 0, or -1 with the error set. */
int etch_lab_find_nearest(struct etch_lab_work *w, const etch_lab_segments *shortest);

/* Turns the orders of the failing schedule round, and keeps the necessary ones. Returns 0, or -1 with the error set. */
int etch_lab_turn_all(struct etch_lab_work *w);

/* Turns an order round until it was so in `of` runs. Ends early if the program still fails. */
int etch_lab_count_turned(struct etch_lab_work *w, const struct etch_lab_order *o, uint32_t of,
                          struct etch_lab_count *c);

/* Turns an order round once more, with another seed. Returns 0, or -1 with the error set. */
int etch_lab_turn_again(struct etch_lab_work *w, const struct etch_lab_order *o, uint32_t seed,
                        struct etch_lab_count *c);

/* Enforces sets of orders until one is proven. Returns 0, or -1 with the error set. */
int etch_lab_choose_claim(struct etch_lab_work *w);

#endif
