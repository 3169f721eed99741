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

/* The orders that the failure needs, and what turning each of them round did to the others. */
struct etch_lab_orders {
    struct etch_lab_order v[ETCH_LAB_ORDERS]; /* the last before the failure first */
    uint32_t n;
    /* holds[i][k]: order k holds in the run that passed because order i was turned round. */
    bool holds[ETCH_LAB_ORDERS][ETCH_LAB_ORDERS];
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
};

/* True if order `of` leads to order `to`: with `of` turned round, `to` no longer happens. */
bool etch_orders_lead(const struct etch_lab_orders *orders, uint32_t of, uint32_t to);

/* The number of necessary orders that `order` leads to without being led to by them. */
uint32_t etch_orders_depth(const struct etch_lab_orders *orders, uint32_t order);

/* Lists sets of orders that no experiment contradicts, the best first: small sets first, then sets with a shape, then
 * sets that begin the chain, then data before locks. A set is contradicted if all of it held in a run that passed.
 * Returns how many; at most `max`. */
uint32_t etch_claims_list(const struct etch_lab_orders *orders, struct etch_claim *v, uint32_t max);

/* The claim without its `at`-th order, with the shape that is left; no orders if an experiment contradicts it. */
struct etch_claim etch_claim_without(const struct etch_lab_orders *orders, const struct etch_claim *claim, uint32_t at);

/* The claim of the order that begins the chain, if no set is enough for the failure. */
struct etch_claim etch_claim_of_source(const struct etch_lab_orders *orders);

/* True if the experiments prove the claim: no run fails with any of its orders turned round, and every run fails
 * with all of them enforced, at least half of them in the same way and at the same place; ETCH_CLAIM_TRIES runs each. */
bool etch_claim_is_proven(const struct etch_claim *claim);

/* The lower Wilson bound, at 95 %, of being necessary and enough. */
double etch_claim_bound(const struct etch_claim *claim);

#endif
