/* SPDX-License-Identifier: MIT */
/* The claim that follows from experiments: a smallest set of orders that the failure needs and that is enough for the
 * failure, and the name of its shape. Pure functions. */
#ifndef ETCH_DIAGNOSE_CLAIM_H
#define ETCH_DIAGNOSE_CLAIM_H

#include "diagnose/orders.h"

#define ETCH_LAB_ORDERS 16u  /* necessary orders that are kept */
#define ETCH_CLAIM_TRIES 20u /* runs in each direction behind the word proven */

enum etch_claim_kind {
    ETCH_CLAIM_NONE,
    ETCH_CLAIM_ORDER,     /* a before b */
    ETCH_CLAIM_ATOMICITY, /* b of another thread comes between a and c of one thread */
    ETCH_CLAIM_TORN,      /* a thread sees one variable new and another old: four moments */
    ETCH_CLAIM_RING,      /* each thread holds a lock that the next thread waits for */
    ETCH_CLAIM_WAIT,      /* a wake-up comes before the wait, and never again */
    ETCH_CLAIM_SET,       /* several orders without a name of their own */
};

#define ETCH_LAB_PASSED_MAX 128u /* runs that passed, and sets that are refused, that are kept */

/* The orders that the failure needs, and the evidence about them. In a mask, bit k stands for order k. */
struct etch_lab_orders {
    struct etch_lab_order v[ETCH_ORDERS_MAX]; /* the last before the failure first */
    uint32_t n;                               /* of the first of them: the failure needs them */
    uint32_t all;                             /* with those that are not known to be necessary */
    uint64_t turned[ETCH_LAB_ORDERS];     /* what holds in the run that passed because this order was turned round */
    uint64_t passed[ETCH_LAB_PASSED_MAX]; /* what holds in other runs that passed */
    uint32_t n_passed;
    uint64_t refused[ETCH_LAB_PASSED_MAX]; /* sets that were enforced, and are not proven */
    uint32_t n_refused;
    bool hangs;                                    /* the failure is a hang */
    struct etch_lab_moment waits[ETCH_LAB_ORDERS]; /* of a hang: where threads wait for what others are to signal */
    uint32_t n_waits;
};

struct etch_claim {
    enum etch_claim_kind kind;
    uint32_t orders[ETCH_LAB_RULES], n; /* indexes of the orders */
    struct etch_lab_event moments[ETCH_LAB_RULES];
    uint32_t n_moments;
    struct etch_lab_count turned; /* each order of the claim turned round */
    struct etch_lab_count alone;  /* all of them enforced, and nothing else */
    bool unsure;                  /* the time was up before the second test */
};

/* The orders that hold in a run. */
uint64_t etch_orders_held(const struct etch_lab_orders *orders, struct etch_lab_events run);

/* Notes a run that passed: a set of orders that all hold in it is not enough for the failure. */
void etch_orders_add_passed(struct etch_lab_orders *orders, struct etch_lab_events run);

/* The same of a run in which the claim was enforced: a second access that never came is no breach of an order. */
void etch_orders_add_enforced(struct etch_lab_orders *orders, const struct etch_claim *claim,
                              struct etch_lab_events run);

/* Notes a set that is not to be listed again. */
void etch_orders_refuse(struct etch_lab_orders *orders, const struct etch_claim *claim);

/* True if order `of` leads to order `to`: with `of` turned round, `to` no longer happens. */
bool etch_orders_lead(const struct etch_lab_orders *orders, uint32_t of, uint32_t to);

/* The number of necessary orders that `order` leads to without being led to by them. */
uint32_t etch_orders_depth(const struct etch_lab_orders *orders, uint32_t order);

/* Lists the smallest sets of orders that no experiment contradicts, the best first: necessary orders first, then sets
 * with a shape, then data before locks, then sets that begin the chain. A set is contradicted if all of it held in a
 * run that passed. A set has at least one necessary order. Returns how many; at most `max`. */
uint32_t etch_claims_list(const struct etch_lab_orders *orders, struct etch_claim *v, uint32_t max);

/* The claim of the order that begins the chain, if no set is enough for the failure. */
struct etch_claim etch_claim_of_source(const struct etch_lab_orders *orders);

/* True if the experiments prove the claim: no run fails with any of its orders turned round, and every run fails
 * with all of them enforced, at least half of them in the same way and at the same place; ETCH_CLAIM_TRIES runs each.
 */
bool etch_claim_is_proven(const struct etch_claim *claim);

/* The lower Wilson bound, at 95 %, of being necessary and enough. */
double etch_claim_bound(const struct etch_claim *claim);

#endif
