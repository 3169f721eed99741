/* SPDX-License-Identifier: MIT */
/* Orders of two moments in runs of the lab, as pure functions over the events of these runs: which orders of a failing
 * run are worth an experiment, and whether an order holds in another run. */
#ifndef ETCH_DIAGNOSE_ORDERS_H
#define ETCH_DIAGNOSE_ORDERS_H

#include "collector/lab_run.h"

#define ETCH_ORDERS_MAX 64u /* orders of one failing run that are tried */
#define ETCH_ORDER_BACK 4u  /* events by which the place where a thread is held moves back, at most */

/* The events of one run. */
struct etch_lab_events {
    const struct etch_lab_event *v;
    uint32_t n;
};

/* How often the program failed, of the runs in which orders could be enforced. */
struct etch_lab_count {
    uint32_t failed, of;
    uint32_t otherwise; /* failed in another way or at another place; not in `failed` */
};

/* `before` comes before `after` in the failing run, in another thread, on the same object. */
struct etch_lab_order {
    struct etch_lab_event before, after;
    uint32_t at_before, at_after;       /* indexes in the failing run; UINT32_MAX: it ends before `after` */
    struct etch_lab_moment hold_before; /* where the thread of `before` is held to turn the order round */
    struct etch_lab_moment hold_after;  /* where the thread of `after` is held to enforce the order */
    bool absent;                        /* the failing run ends before `after` */
    bool whole; /* turned round: `before` waits for the end of the other thread, because to wait for `after` alone makes
                   the program fail elsewhere */
    struct etch_lab_count turned, alone;
};

/* True if the two events share a byte of memory, or are of one synchronisation object. */
bool etch_event_overlaps(const struct etch_lab_event *a, const struct etch_lab_event *b);

/* True if the two events are of different threads and of the same memory, and one of them changes it. */
bool etch_event_conflicts(const struct etch_lab_event *a, const struct etch_lab_event *b);

/* Lists orders of the failing run, the last first: for each access the nearest conflicting accesses before it, each
 * pair of statements once, and each pair of critical sections once. Of several visits of the same two statements only
 * the nearest to each other are listed. Behind them the orders whose second access the failing run did not reach, as
 * the passing run shows them. In a long run only orders near the failure are looked for. Returns how many; at most
 * ETCH_ORDERS_MAX. */
uint32_t etch_orders_list(struct etch_lab_order *v, struct etch_lab_events failing, struct etch_lab_events passing);

/* Adds the orders whose second access the failing run did not reach, as another passing run shows them. */
uint32_t etch_orders_add_absent(struct etch_lab_order *v, uint32_t n, struct etch_lab_events failing,
                                struct etch_lab_events passing);

/* Adds further orders of pairs of statements that are listed already. */
uint32_t etch_orders_add_again(struct etch_lab_order *v, uint32_t n, struct etch_lab_events failing);

/* True if two other accesses of the same two statements came in that order, one right after the other, or if the run is
 * too long to know. */
bool etch_order_recurs(const struct etch_lab_order *order, struct etch_lab_events run);

/* The index of a moment in a run; `events.n` if it never came. */
uint32_t etch_moment_find(struct etch_lab_events events, const struct etch_lab_event *moment);

/* True if both moments came in that order, or if the first came and the second, which the failing run lacks, did not.
 */
bool etch_order_holds(const struct etch_lab_order *order, struct etch_lab_events events);

/* The moment `back` synchronisations of the same thread before `event`, as it was in the run. A thread that is held
 * inside a critical section would hold others up with it; held before the section, it does not. Returns false if the
 * thread has no such event. */
bool etch_moment_back(struct etch_lab_events events, const struct etch_lab_event *event, uint32_t back,
                      struct etch_lab_moment *moment);

struct etch_lab_moment etch_moment_of(const struct etch_lab_event *event);

/* The order to enforce, and the opposite order. */
struct etch_lab_rule etch_order_kept(const struct etch_lab_order *order);
struct etch_lab_rule etch_order_turned(const struct etch_lab_order *order);

#endif
