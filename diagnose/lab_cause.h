/* SPDX-License-Identifier: MIT */
/* Experiments that find the cause of a failing schedule. The schedule is shortened first. Then the orders of two
 * events in the schedule are reversed one at a time. An order is necessary if the failure disappears when the order
 * is reversed. A smallest set of necessary orders is proven to be the cause if enforcing this set alone makes the
 * program fail under other schedules too. */
#ifndef ETCH_DIAGNOSE_LAB_CAUSE_H
#define ETCH_DIAGNOSE_LAB_CAUSE_H

#include "collector/lab_explore.h"
#include "diagnose/claim.h"

#define ETCH_LAB_TRIES 4u /* of each order turned round, before it counts as necessary */

/* What the experiments may take. */
struct etch_lab_budget {
    uint64_t runs;                  /* 0: no limit */
    double until;                   /* etch_time_seconds(); 0: no limit */
    bool (*is_over)(void *context); /* asked between runs; NULL: never */
    void *context;
};

/* One experiment, for those who want to see all of them. */
struct etch_lab_trial {
    const struct etch_lab_order *order; /* that was turned round; NULL: `claim` was enforced */
    const struct etch_claim *claim;
    const char *outcome;
};

struct etch_lab_observer {
    void (*tried)(void *context, const struct etch_lab_trial *trial); /* NULL: nobody wants to see them */
    void *context;
};

#define ETCH_LAB_CURVE 16u

/* How often the program fails if the first `point` points of the failing schedule are followed. */
struct etch_lab_curve_point {
    uint64_t point;
    uint32_t failed, of;
};

struct etch_lab_curve {
    struct etch_lab_curve_point v[ETCH_LAB_CURVE]; /* in the order in which they were tried */
    uint32_t n;
    uint64_t points; /* of the failing schedule */
};

/* A thread waits for ever for a lock whose owner has ended. */
struct etch_lab_orphan {
    struct etch_lab_event wait, taken; /* `taken`: where the owner took the lock; no thread has it if `known` is false */
    bool known;
};

struct etch_lab_cause {
    struct etch_lab_schedule schedule; /* the shortest that was found */
    const uint64_t *sites;             /* of its points: the failing schedule's own */
    uint64_t runs;
    uint64_t base, end;            /* of the program, in memory */
    struct etch_lab_curve curve;
    struct etch_lab_orphan orphan;
    uint64_t *more_sites; /* instructions that make points, with those that the runs before the experiments did not
                             know; NULL: there are no others */
    uint32_t n_tried;              /* orders that were reversed */
    bool cut;                      /* the budget ended before all orders were tried */
    struct etch_lab_orders orders; /* the necessary ones */
    struct etch_claim claim;       /* the answer; kind ETCH_CLAIM_NONE: no order decides the failure */
};

/* Experiments with a failing schedule. `like` names the program to run. `passing` are the events of a run that passed;
 * `n_passing` is 0 if there are none. `observer` may be NULL. Returns 0, or -1 with `err` set. */
int etch_lab_find_cause(struct etch_lab_cause *cause, const struct etch_lab_schedule *failing,
                        const struct etch_lab_request *like, struct etch_lab_events passing,
                        const struct etch_lab_budget *budget, const struct etch_lab_observer *observer,
                        struct etch_error *err);

void etch_lab_cause_release(struct etch_lab_cause *cause);

/* The experiments with a failure that a search has found. A run that fails early has few points. So more schedules are
 * tried first, and the last failure is taken: it shows more, because more shared instructions are known. */
struct etch_lab_experiment {
    struct etch_lab_found known; /* of the further schedules */
    struct etch_lab_cause cause;
};

/* `explore` is the search that led to `found`. Returns 0, or -1 with `err` set; to be released in either case. */
int etch_lab_experiment(struct etch_lab_experiment *experiment, const struct etch_lab_found *found,
                        const struct etch_lab_explore *explore, const struct etch_lab_budget *budget,
                        const struct etch_lab_observer *observer, struct etch_error *err);
void etch_lab_experiment_release(struct etch_lab_experiment *experiment);

#endif
