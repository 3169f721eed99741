/* SPDX-License-Identifier: MIT */
/* See claim.h. */
#include "diagnose/claim.h"

#include "sketch/predictor.h"

#include <stdlib.h>
#include <string.h>

bool etch_orders_lead(const struct etch_lab_orders *o, uint32_t of, uint32_t to)
{
    return of != to && !o->holds[of][to];
}

uint32_t etch_orders_depth(const struct etch_lab_orders *o, uint32_t order)
{
    uint32_t depth = 0;

    for (uint32_t i = 0; i < o->n; i++)
        depth += etch_orders_lead(o, order, i) && !etch_orders_lead(o, i, order);
    return depth;
}

/* A run that passed although all orders of the set held shows that the set is not enough. */
static bool is_contradicted(const struct etch_lab_orders *o, const struct etch_claim *c)
{
    for (uint32_t i = 0; i < o->n; i++) {
        bool all = true;

        for (uint32_t k = 0; k < c->n; k++)
            all = all && c->orders[k] != i && o->holds[i][c->orders[k]];
        if (all)
            return true;
    }
    return false;
}

/* ---- Shapes ---- */

static bool is_sync(const struct etch_lab_orders *o, const struct etch_claim *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (!o->v[c->orders[i]].before.sync || !o->v[c->orders[i]].after.sync)
            return false;
    return true;
}

/* Each order leads from one of the two threads to the other, in opposite directions. */
static bool are_crossed(const struct etch_lab_order *first, const struct etch_lab_order *second)
{
    return first->before.thread == second->after.thread && first->after.thread == second->before.thread;
}

static void set_moments(struct etch_claim *c, enum etch_claim_kind kind, const struct etch_lab_event *const *m,
                        uint32_t n)
{
    c->kind = kind;
    c->n_moments = n;
    for (uint32_t i = 0; i < n; i++)
        c->moments[i] = *m[i];
}

/* One access of another thread between two of one thread, which no serial execution has. */
struct triple {
    const struct etch_lab_event *m[3];
    uint32_t at[3];
};

static bool is_unserialisable(const struct triple *t)
{
    bool a = t->m[0]->write, b = t->m[1]->write, c = t->m[2]->write;

    return t->at[0] < t->at[1] && t->at[1] < t->at[2] && (b ? !(a && c) : a && c);
}

/* The orders a < b and x < c of one variable, where one thread has a and c, and another has b and x: finds the access
 * that came between two of the other thread. */
static bool name_between(struct etch_claim *c, const struct etch_lab_order *e, const struct etch_lab_order *f)
{
    const struct triple triples[] = {
        {{&e->before, &e->after, &f->after}, {e->at_before, e->at_after, f->at_after}},
        {{&e->before, &f->before, &f->after}, {e->at_before, f->at_before, f->at_after}},
        {{&f->before, &f->after, &e->after}, {f->at_before, f->at_after, e->at_after}},
        {{&f->before, &e->before, &e->after}, {f->at_before, e->at_before, e->at_after}},
    };

    for (size_t i = 0; i < sizeof(triples) / sizeof(triples[0]); i++)
        if (is_unserialisable(&triples[i])) {
            set_moments(c, ETCH_CLAIM_ATOMICITY, triples[i].m, 3);
            return true;
        }
    return false;
}

/* The same of two variables: b comes before x, so that the other thread came between a and c. */
static bool name_torn(struct etch_claim *c, const struct etch_lab_order *e, const struct etch_lab_order *f)
{
    const struct etch_lab_event *four[] = {&e->before, &e->after, &f->before, &f->after};

    if (e->at_before >= f->at_after || e->at_after > f->at_before)
        return false;
    set_moments(c, ETCH_CLAIM_TORN, four, 4);
    return true;
}

static bool name_pair(struct etch_claim *c, const struct etch_lab_order *e, const struct etch_lab_order *f)
{
    if (!are_crossed(e, f))
        return false;
    if (etch_event_overlaps(&e->before, &f->after) && etch_event_overlaps(&e->after, &f->before))
        return name_between(c, e, f);
    return name_torn(c, e, f) || name_torn(c, f, e);
}

/* In a hang each thread of a ring holds the lock of its `before`, and waits for the lock at the `after` of the order
 * that begins in the next thread. */
static bool name_ring(const struct etch_lab_orders *o, struct etch_claim *c)
{
    const struct etch_lab_event *moments[ETCH_LAB_RULES];
    uint32_t at = 0, n = 0;

    if (!o->hangs || c->n < 2 || 2 * c->n > ETCH_LAB_RULES || !is_sync(o, c))
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct etch_lab_order *own = &o->v[c->orders[at]];
        uint32_t next = 0;

        while (next < c->n && o->v[c->orders[next]].after.thread != own->before.thread)
            next++;
        if (next == c->n || (next == 0) != (i + 1 == c->n))
            return false;
        moments[n++] = &own->before;
        moments[n++] = &o->v[c->orders[next]].after;
        at = next;
    }
    set_moments(c, ETCH_CLAIM_RING, moments, n);
    return true;
}

/* A wake-up that comes before a thread begins to wait, for ever. */
static bool name_wait(const struct etch_lab_orders *o, struct etch_claim *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = 0; k < o->n_waits; k++) {
            const struct etch_lab_order *e = &o->v[c->orders[i]];
            const struct etch_lab_event *two[] = {&e->before, &e->after};

            if (o->waits[k].thread != e->after.thread || o->waits[k].site != e->after.site || !e->before.sync)
                continue;
            set_moments(c, ETCH_CLAIM_WAIT, two, 2);
            return true;
        }
    return false;
}

/* The shape of a larger set is that of two of its orders, those nearest to the failure first. */
static void name_shape(const struct etch_lab_orders *o, struct etch_claim *c)
{
    const struct etch_lab_order *e = &o->v[c->orders[0]];
    const struct etch_lab_event *two[] = {&e->before, &e->after};

    if (name_ring(o, c) || name_wait(o, c))
        return;
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = i + 1; k < c->n; k++)
            if (name_pair(c, &o->v[c->orders[i]], &o->v[c->orders[k]]))
                return;
    set_moments(c, c->n == 1 ? ETCH_CLAIM_ORDER : ETCH_CLAIM_SET, two, 2);
}

/* ---- The choice ---- */

struct ranked {
    struct etch_claim claim;
    int rank[5];
};

static bool has_sync(const struct etch_lab_orders *o, const struct etch_claim *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (o->v[c->orders[i]].before.sync || o->v[c->orders[i]].after.sync)
            return true;
    return false;
}

static struct ranked rank(const struct etch_lab_orders *o, const struct etch_claim *c)
{
    struct ranked r = {.claim = *c};
    uint32_t depth = 0, near = 0;

    name_shape(o, &r.claim);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t d = etch_orders_depth(o, c->orders[i]);

        depth = d > depth ? d : depth;
        near += c->orders[i];
    }
    r.rank[0] = (int)c->n;
    r.rank[1] = r.claim.kind == ETCH_CLAIM_SET;
    r.rank[2] = has_sync(o, c) && r.claim.kind != ETCH_CLAIM_RING && r.claim.kind != ETCH_CLAIM_WAIT;
    r.rank[3] = -(int)depth;
    r.rank[4] = (int)near;
    return r;
}

static int by_rank(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;

    for (size_t i = 0; i < sizeof(a->rank) / sizeof(a->rank[0]); i++)
        if (a->rank[i] != b->rank[i])
            return a->rank[i] < b->rank[i] ? -1 : 1;
    return 0;
}

#define SETS (ETCH_LAB_ORDERS * (ETCH_LAB_ORDERS + 1) + 2)

static void add(const struct etch_lab_orders *o, const struct etch_claim *c, struct ranked *v, uint32_t *n)
{
    if (!is_contradicted(o, c))
        v[(*n)++] = rank(o, c);
}

static void add_all(const struct etch_lab_orders *o, bool sync, struct ranked *v, uint32_t *n)
{
    struct etch_claim all = {0};

    for (uint32_t i = 0; i < o->n && all.n < ETCH_LAB_RULES; i++)
        if (!sync || (o->v[i].before.sync && o->v[i].after.sync))
            all.orders[all.n++] = i;
    if (all.n > 2)
        add(o, &all, v, n);
}

uint32_t etch_claims_list(const struct etch_lab_orders *o, struct etch_claim *v, uint32_t max)
{
    struct ranked *all = calloc(SETS, sizeof(*all));
    uint32_t n = 0;

    if (!all)
        return 0;
    for (uint32_t i = 0; i < o->n; i++)
        add(o, &(struct etch_claim){.orders = {i}, .n = 1}, all, &n);
    for (uint32_t i = 0; i < o->n; i++)
        for (uint32_t k = i + 1; k < o->n; k++)
            add(o, &(struct etch_claim){.orders = {i, k}, .n = 2}, all, &n);
    add_all(o, o->hangs, all, &n);
    if (o->hangs)
        add_all(o, false, all, &n);
    qsort(all, n, sizeof(*all), by_rank);
    n = n < max ? n : max;
    for (uint32_t i = 0; i < n; i++)
        v[i] = all[i].claim;
    free(all);
    return n;
}

struct etch_claim etch_claim_without(const struct etch_lab_orders *o, const struct etch_claim *claim, uint32_t at)
{
    struct etch_claim less = {0};

    for (uint32_t i = 0; i < claim->n; i++)
        if (i != at)
            less.orders[less.n++] = claim->orders[i];
    if (is_contradicted(o, &less))
        return (struct etch_claim){0};
    name_shape(o, &less);
    return less;
}

struct etch_claim etch_claim_of_source(const struct etch_lab_orders *o)
{
    struct ranked best = {0};

    for (uint32_t i = 0; i < o->n; i++) {
        struct ranked r = rank(o, &(struct etch_claim){.orders = {i}, .n = 1});

        if (!best.claim.n || by_rank(&r, &best) < 0)
            best = r;
    }
    return best.claim;
}

/* ---- The verdict ---- */

bool etch_claim_is_proven(const struct etch_claim *c)
{
    return c->n && c->kind != ETCH_CLAIM_SET && c->kind != ETCH_CLAIM_NONE && c->turned.of >= ETCH_CLAIM_TRIES &&
           !c->turned.failed && !c->turned.otherwise && c->alone.of >= ETCH_CLAIM_TRIES &&
           c->alone.failed + c->alone.otherwise == c->alone.of && 2 * c->alone.failed >= c->alone.of;
}

double etch_claim_bound(const struct etch_claim *c)
{
    double passes, fails, above;

    etch_wilson(c->turned.of - c->turned.failed - c->turned.otherwise, c->turned.of, &passes, &above);
    etch_wilson(c->alone.failed, c->alone.of, &fails, &above);
    return c->turned.of && c->alone.of ? passes * fails : 0;
}
