/* SPDX-License-Identifier: MIT */
/* Experiments that find the cause of a failing schedule. The schedule is shortened first. Then the orders of two
 * events in the schedule are reversed one at a time. An order is necessary if the failure disappears when the order
 * is reversed. A necessary order is proven if enforcing this order alone makes the program fail under other
 * schedules too. */
#ifndef ETCH_COLLECTOR_LAB_CAUSE_H
#define ETCH_COLLECTOR_LAB_CAUSE_H

#include "collector/lab_explore.h"

#define ETCH_LAB_TRIES 10u /* of each order, in each direction */
#define ETCH_LAB_ORDERS 16u

/* How often the program failed, of the runs in which the order could be enforced. */
struct etch_lab_count {
    uint32_t failed, of;
    uint32_t otherwise; /* failed in another way or at another place; not in `failed` */
};

/* `before` comes before `after` in the failing run, in another thread, on the same object. */
struct etch_lab_order {
    struct etch_lab_event before, after;
    bool absent; /* the failing run ends before `after` */
    bool whole; /* turned round: `before` waits for the end of the other thread, because to wait for `after` alone makes
                   the program fail elsewhere */
    struct etch_lab_count turned, alone;
};

struct etch_lab_cause {
    struct etch_lab_schedule schedule; /* the shortest that was found */
    const uint64_t *sites;             /* of its points: the failing schedule's own */
    uint64_t runs;
    uint64_t base, end;                            /* of the program, in memory */
    uint32_t n_tried;                              /* orders that were reversed */
    struct etch_lab_order orders[ETCH_LAB_ORDERS]; /* the necessary ones, the best first */
    uint32_t n_orders;
    struct etch_lab_count together; /* all of them enforced, if there are several */
};

/* Experiments with a failing schedule. `like` names the program to run. `passing` are the events of a run that passed;
 * `n_passing` is 0 if there are none. Returns 0, or -1 with `err` set. */
int etch_lab_find_cause(struct etch_lab_cause *cause, const struct etch_lab_schedule *failing,
                        const struct etch_lab_request *like, const struct etch_lab_event *passing, uint32_t n_passing,
                        struct etch_error *err);

/* An order is proven if the program never fails with the order reversed and always fails with the order enforced. */
bool etch_lab_order_is_proven(const struct etch_lab_order *order);

/* The order the other way round, to be enforced. */
struct etch_lab_rule etch_lab_order_turned(const struct etch_lab_order *order);

void etch_lab_cause_release(struct etch_lab_cause *cause);

/* The experiments with a failure that a search has found. A run that fails early has few points. So more schedules are
 * tried first, and the last failure is taken: it shows more, because more shared instructions are known. */
struct etch_lab_experiment {
    struct etch_lab_found known; /* of the further schedules */
    struct etch_lab_cause cause;
};

/* `explore` is the search that led to `found`. Returns 0, or -1 with `err` set; to be released in either case. */
int etch_lab_experiment(struct etch_lab_experiment *experiment, const struct etch_lab_found *found,
                        const struct etch_lab_explore *explore, struct etch_error *err);
void etch_lab_experiment_release(struct etch_lab_experiment *experiment);

#endif
