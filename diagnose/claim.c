/* SPDX-License-Identifier: MIT */
/* See claim.h. */
#include "diagnose/claim.h"

#include "sketch/predictor.h"

#include <stdlib.h>
#include <string.h>

static uint32_t count_all(const struct etch_lab_orders *o)
{
    return o->all > o->n ? o->all : o->n;
}

uint64_t etch_orders_held(const struct etch_lab_orders *o, struct etch_lab_events run)
{
    uint64_t held = 0;

    for (uint32_t k = 0; k < count_all(o); k++)
        held |= (uint64_t)etch_order_holds(&o->v[k], run) << k;
    return held;
}

void etch_orders_add_passed(struct etch_lab_orders *o, struct etch_lab_events run)
{
    if (o->n_passed < ETCH_LAB_PASSED_MAX)
        o->passed[o->n_passed++] = etch_orders_held(o, run);
}

static uint64_t mask_of(const struct etch_claim *c)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < c->n; i++)
        mask |= UINT64_C(1) << c->orders[i];
    return mask;
}

void etch_orders_add_enforced(struct etch_lab_orders *o, const struct etch_claim *c, struct etch_lab_events run)
{
    if (o->n_passed < ETCH_LAB_PASSED_MAX)
        o->passed[o->n_passed++] = etch_orders_held(o, run) | mask_of(c);
}

void etch_orders_refuse(struct etch_lab_orders *o, const struct etch_claim *c)
{
    if (o->n_refused < ETCH_LAB_PASSED_MAX)
        o->refused[o->n_refused++] = mask_of(c);
}

bool etch_orders_lead(const struct etch_lab_orders *o, uint32_t of, uint32_t to)
{
    return of != to && !(o->turned[of] >> to & 1);
}

uint32_t etch_orders_depth(const struct etch_lab_orders *o, uint32_t order)
{
    uint32_t depth = 0;

    for (uint32_t i = 0; i < o->n; i++)
        depth += etch_orders_lead(o, order, i) && !etch_orders_lead(o, i, order);
    return depth;
}

/* A run that passed although all orders of the set held: the set is not enough. NULL: there is none. */
static const uint64_t *contradiction(const struct etch_lab_orders *o, uint64_t set)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (!(set & ~o->turned[i]))
            return &o->turned[i];
    for (uint32_t i = 0; i < o->n_passed; i++)
        if (!(set & ~o->passed[i]))
            return &o->passed[i];
    return NULL;
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

/* One access of the other thread to both variables, such as a copy of a whole record. */
static bool is_one_access(const struct etch_lab_event *b, const struct etch_lab_event *x)
{
    return b->site == x->site && b->visit == x->visit;
}

/* The same of two variables: b comes before x, so that the other thread came between a and c. */
static bool name_torn(struct etch_claim *c, const struct etch_lab_order *e, const struct etch_lab_order *f)
{
    const struct etch_lab_event *four[] = {&e->before, &e->after, &f->before, &f->after};

    const struct etch_lab_event *three[] = {&e->before, &e->after, &f->after};

    if (e->at_before >= f->at_after || e->at_after > f->at_before)
        return false;
    if (is_one_access(&e->after, &f->before)) {
        set_moments(c, ETCH_CLAIM_ATOMICITY, three, 3);
        return true;
    }
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

/* The last moment of an order that the failing run reached. */
static uint32_t last_moment(const struct etch_lab_order *o)
{
    return o->absent ? o->at_before : o->at_after;
}

/* The orders of a set: the necessary ones first, and of these those nearest to the failure. */
static void sort_by_nearness(const struct etch_lab_orders *o, const struct etch_claim *c, uint32_t near[ETCH_LAB_RULES])
{
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t k = c->orders[i], at = i;

        for (; at > 0 && (near[at - 1] >= o->n) >= (k >= o->n); at--) {
            if ((near[at - 1] >= o->n) == (k >= o->n) && last_moment(&o->v[near[at - 1]]) >= last_moment(&o->v[k]))
                break;
            near[at] = near[at - 1];
        }
        near[at] = k;
    }
}

/* The shape of a larger set is that of two of its orders, those nearest to the failure first. */
static void name_shape(const struct etch_lab_orders *o, struct etch_claim *c)
{
    const struct etch_lab_order *e = &o->v[c->orders[0]];
    const struct etch_lab_event *two[] = {&e->before, &e->after};
    uint32_t near[ETCH_LAB_RULES];

    if (name_ring(o, c) || name_wait(o, c))
        return;
    sort_by_nearness(o, c, near);
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = i + 1; k < c->n; k++)
            if (name_pair(c, &o->v[near[i]], &o->v[near[k]]))
                return;
    set_moments(c, c->n == 1 ? ETCH_CLAIM_ORDER : ETCH_CLAIM_SET, two, 2);
}

/* ---- The choice ---- */

#define COST 2u       /* of a necessary order */
#define OTHER_COST 3u /* of an order that is not known to be necessary */

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
        uint32_t d = c->orders[i] < o->n ? etch_orders_depth(o, c->orders[i]) : 0;

        depth = d > depth ? d : depth;
        near += c->orders[i];
    }
    r.rank[0] = (int)(COST * c->n);
    for (uint32_t i = 0; i < c->n; i++)
        r.rank[0] += c->orders[i] < o->n ? 0 : (int)(OTHER_COST - COST);
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

/* ---- Sets ---- */

#define SETS 256u     /* that are compared */
#define STEPS 100000u /* of one search */
#define MOST_COST (ETCH_LAB_RULES * OTHER_COST)

struct search {
    const struct etch_lab_orders *o;
    uint64_t sets[SETS];
    uint32_t n, steps;
};

static bool is_listed(const struct search *s, uint64_t set)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->sets[i] == set)
            return true;
    for (uint32_t i = 0; i < s->o->n_refused; i++)
        if (s->o->refused[i] == set)
            return true;
    return false;
}

static bool is_necessary(const struct etch_lab_orders *o, uint64_t set)
{
    return (set & ((UINT64_C(1) << o->n) - 1)) != 0;
}

/* A run that passed contradicts the set so far: one of the orders that did not hold in it belongs to the set. */
static void extend(struct search *s, uint64_t set, uint32_t n, uint32_t left)
{
    const uint64_t *run = contradiction(s->o, set);
    uint64_t held = run ? *run : 0;

    if (s->steps++ > STEPS || s->n == SETS)
        return;
    if (set && !run) {
        if (is_necessary(s->o, set) && !is_listed(s, set))
            s->sets[s->n++] = set;
        return;
    }
    for (uint32_t k = 0; k < count_all(s->o) && n < ETCH_LAB_RULES; k++) {
        uint32_t cost = k < s->o->n ? COST : OTHER_COST;

        if (!((held | set) >> k & 1) && cost <= left)
            extend(s, set | UINT64_C(1) << k, n + 1, left - cost);
    }
}

static struct etch_claim claim_of(uint64_t set)
{
    struct etch_claim c = {0};

    for (uint32_t k = 0; k < ETCH_ORDERS_MAX; k++)
        if (set >> k & 1)
            c.orders[c.n++] = k;
    return c;
}

uint32_t etch_claims_list(const struct etch_lab_orders *o, struct etch_claim *v, uint32_t max)
{
    struct search *s = calloc(1, sizeof(*s));
    struct ranked *all = calloc(SETS, sizeof(*all));
    uint32_t n = 0;

    if (s)
        s->o = o;
    for (uint32_t cost = COST; s && all && o->n && cost <= MOST_COST && !s->n && s->steps <= STEPS; cost++)
        extend(s, 0, 0, cost);
    for (uint32_t i = 0; s && all && i < s->n; i++) {
        struct etch_claim c = claim_of(s->sets[i]);

        all[i] = rank(o, &c);
    }
    if (s && all) {
        n = s->n < max ? s->n : max;
        qsort(all, s->n, sizeof(*all), by_rank);
    }
    for (uint32_t i = 0; i < n; i++)
        v[i] = all[i].claim;
    free(all);
    free(s);
    return n;
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
    return c->n && !c->unsure && c->kind != ETCH_CLAIM_SET && c->kind != ETCH_CLAIM_NONE &&
           c->turned.of >= ETCH_CLAIM_TRIES && !c->turned.failed && !c->turned.otherwise &&
           c->alone.of >= ETCH_CLAIM_TRIES && c->alone.failed + c->alone.otherwise == c->alone.of &&
           2 * c->alone.failed >= c->alone.of;
}

double etch_claim_bound(const struct etch_claim *c)
{
    double passes, fails, above;

    etch_wilson(c->turned.of - c->turned.failed - c->turned.otherwise, c->turned.of, &passes, &above);
    etch_wilson(c->alone.failed, c->alone.of, &fails, &above);
    return c->turned.of && c->alone.of ? passes * fails : 0;
}
