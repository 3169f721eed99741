/* SPDX-License-Identifier: MIT */
/* See orders.h. */
#include "diagnose/orders.h"

#include "diagnose/regions.h"

#include <string.h>

#define PRESENT 40u /* orders of the failing run itself */
#define NEAREST 3u  /* conflicting accesses before each access */

/* A run may have a million events, and then pairs are not looked for in all of it. Those near the failure come first.
 */
#define EFFORT UINT64_C(300000000)

/* Takes `events` looked at from the effort that is left. False if there is none left. */
static bool spend(uint64_t *left, uint64_t events)
{
    *left -= events < *left ? events : *left;
    return *left > 0;
}

static uint64_t begin_of(const struct etch_lab_event *e)
{
    return e->bytes ? e->address : e->object;
}

static uint64_t end_of(const struct etch_lab_event *e)
{
    return e->bytes ? e->address + e->bytes : e->object + (e->size > 8 ? e->size : 8);
}

bool etch_event_overlaps(const struct etch_lab_event *a, const struct etch_lab_event *b)
{
    return begin_of(a) < end_of(b) && begin_of(b) < end_of(a);
}

bool etch_event_conflicts(const struct etch_lab_event *a, const struct etch_lab_event *b)
{
    return a->thread != b->thread && a->object && b->object && etch_event_overlaps(a, b) && (a->write || b->write) &&
           a->visit && b->visit;
}

static bool is_same_moment(const struct etch_lab_event *a, const struct etch_lab_event *b)
{
    return a->site == b->site && a->thread == b->thread && a->visit == b->visit;
}

uint32_t etch_moment_find(struct etch_lab_events events, const struct etch_lab_event *moment)
{
    uint32_t i = 0;

    while (i < events.n && !is_same_moment(&events.v[i], moment))
        i++;
    return i;
}

struct etch_lab_moment etch_moment_of(const struct etch_lab_event *e)
{
    return (struct etch_lab_moment){.site = e->site, .thread = e->thread, .visit = e->visit};
}

static bool is_known(const struct etch_lab_order *v, uint32_t n, const struct etch_lab_event *a,
                     const struct etch_lab_event *b)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].before.site == a->site && v[i].after.site == b->site && v[i].before.thread == a->thread &&
            v[i].after.thread == b->thread)
            return true;
    return false;
}

static struct etch_lab_order order_of(const struct etch_lab_event *before, const struct etch_lab_event *after,
                                      uint32_t at_before, uint32_t at_after)
{
    return (struct etch_lab_order){.before = *before,
                                   .after = *after,
                                   .at_before = at_before,
                                   .at_after = at_after,
                                   .hold_before = etch_moment_of(before),
                                   .hold_after = etch_moment_of(after),
                                   .absent = at_after == UINT32_MAX};
}

/* No event of the two threads between the two conflicts with one of them: the two can be swapped, and nothing else.
 * With `same`, only events of the same two statements count: then the two are the nearest visits of these. */
static bool is_immediate(struct etch_lab_events run, uint32_t i, uint32_t k, bool same)
{
    for (uint32_t j = i + 1; j < k; j++) {
        const struct etch_lab_event *e = &run.v[j];
        bool first = e->thread == run.v[i].thread && (!same || e->site == run.v[i].site);
        bool second = e->thread == run.v[k].thread && (!same || e->site == run.v[k].site);

        if (!e->release &&
            ((first && etch_event_conflicts(e, &run.v[k])) || (second && etch_event_conflicts(&run.v[i], e))))
            return false;
    }
    return true;
}

/* Two critical sections are swapped as a whole: threads are held where they take the lock. */
static void hold_sections(struct etch_lab_order *o, struct etch_lab_events failing, struct etch_lab_events other,
                          uint32_t before, uint32_t after)
{
    uint32_t first = etch_region_common(failing, before, other, after);
    uint32_t second = etch_region_common(other, after, failing, before);

    if (first != UINT32_MAX && failing.v[first].visit)
        o->hold_before = etch_moment_of(&failing.v[first]);
    if (second != UINT32_MAX && other.v[second].visit)
        o->hold_after = etch_moment_of(&other.v[second]);
}

/* The accesses in two sections of one lock say more than the lock: true if the sections have such accesses. */
static bool has_accesses(struct etch_lab_events run, uint32_t i, uint32_t k)
{
    uint32_t end_i = etch_region_end(run, i), end_k = etch_region_end(run, k);

    for (uint32_t a = i + 1; a < end_i; a++)
        for (uint32_t b = k + 1; b < end_k && run.v[a].thread == run.v[i].thread && !run.v[a].sync; b++)
            if (run.v[b].thread == run.v[k].thread && etch_event_conflicts(&run.v[a], &run.v[b]))
                return true;
    return false;
}

static bool is_same_hold(const struct etch_lab_order *a, const struct etch_lab_order *b)
{
    return memcmp(&a->hold_before, &b->hold_before, sizeof(a->hold_before)) == 0 &&
           memcmp(&a->hold_after, &b->hold_after, sizeof(a->hold_after)) == 0;
}

/* The same two sections are swapped once. */
static bool is_swapped(const struct etch_lab_order *v, uint32_t n, const struct etch_lab_order *o)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_same_hold(&v[i], o))
            return true;
    return false;
}

static void add_present(struct etch_lab_order *v, uint32_t *n, struct etch_lab_events run, uint32_t i, uint32_t k)
{
    struct etch_lab_order o = order_of(&run.v[i], &run.v[k], i, k);

    if (o.before.sync && o.after.sync && has_accesses(run, i, k))
        return;
    hold_sections(&o, run, run, i, k);
    if (!is_swapped(v, *n, &o))
        v[(*n)++] = o;
}

/* With `again`, also pairs of statements that are listed already. */
static uint32_t list_present(struct etch_lab_order *v, uint32_t n, uint32_t max, struct etch_lab_events run, bool again)
{
    uint64_t left = EFFORT;

    for (uint32_t k = run.n; k-- > 0 && n < max && left;)
        for (uint32_t i = k, near = 0; !run.v[k].release && i-- > 0 && near < NEAREST && n < max && spend(&left, 1);) {
            if (run.v[i].release || !etch_event_conflicts(&run.v[i], &run.v[k]))
                continue;
            near++;
            spend(&left, 2 * (uint64_t)k - i);
            if ((again || !is_known(v, n, &run.v[i], &run.v[k])) && is_immediate(run, i, k, true) &&
                !etch_region_is_ordered(run, i, k))
                add_present(v, &n, run, i, k);
        }
    return n;
}

uint32_t etch_orders_add_again(struct etch_lab_order *v, uint32_t n, struct etch_lab_events failing)
{
    return list_present(v, n, ETCH_ORDERS_MAX, failing, true);
}

bool etch_order_recurs(const struct etch_lab_order *o, struct etch_lab_events run)
{
    uint64_t left = EFFORT;

    for (uint32_t k = 0; k < run.n; k++)
        for (uint32_t i = k, near = 0; run.v[k].site == o->after.site && i-- > 0 && near < NEAREST;) {
            if (!spend(&left, 1))
                return true; /* not known */
            if (run.v[i].release || !etch_event_conflicts(&run.v[i], &run.v[k]))
                continue;
            near++;
            spend(&left, k - i);
            if (run.v[i].site == o->before.site && is_immediate(run, i, k, false))
                return true;
        }
    return false;
}

/* An order that the failing run did not reach: `early` of the passing run, and `late`, which is `before` in the failing
 * run. */
static uint32_t add_absent(struct etch_lab_order *v, uint32_t n, struct etch_lab_events failing,
                           struct etch_lab_events passing, uint32_t early, uint32_t late, uint32_t before)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_same_moment(&v[i].before, &passing.v[late]) && is_same_moment(&v[i].after, &passing.v[early]))
            return n;
    if (n < ETCH_ORDERS_MAX) {
        v[n] = order_of(&passing.v[late], &passing.v[early], before, UINT32_MAX);
        hold_sections(&v[n++], failing, passing, before, early);
    }
    return n;
}

/* `passing.v[i]` conflicts with the later `passing.v[k]`, and the failing run did not reach it. */
static bool is_missing(struct etch_lab_events failing, struct etch_lab_events passing, uint32_t i, uint32_t k)
{
    return !passing.v[i].release && etch_event_conflicts(&passing.v[i], &passing.v[k]) &&
           etch_moment_find(failing, &passing.v[i]) == failing.n;
}

/* The second access of an order may be missing because the program failed first: a use before the initialisation. A
 * passing run has both accesses in the other order: the nearest missing access, and the first of its thread. */
uint32_t etch_orders_add_absent(struct etch_lab_order *v, uint32_t n, struct etch_lab_events failing,
                                struct etch_lab_events passing)
{
    uint64_t left = EFFORT;

    for (uint32_t k = passing.n; k-- > 0 && n < ETCH_ORDERS_MAX && spend(&left, failing.n + 1);) {
        const struct etch_lab_event *late = &passing.v[k];
        uint32_t before = late->release || !late->object ? failing.n : etch_moment_find(failing, late), i = k, first;

        if (before == failing.n)
            continue;
        while (i > 0 && spend(&left, 1) && !is_missing(failing, passing, i - 1, k))
            i--;
        if (!left)
            break;
        if (i-- == 0 || is_known(v, n, late, &passing.v[i]))
            continue;
        n = add_absent(v, n, failing, passing, i, k, before);
        for (first = 0; first < i; first++)
            if (passing.v[first].thread == passing.v[i].thread && is_missing(failing, passing, first, k))
                break;
        if (first < i)
            n = add_absent(v, n, failing, passing, first, k, before);
    }
    return n;
}

uint32_t etch_orders_list(struct etch_lab_order *v, struct etch_lab_events failing, struct etch_lab_events passing)
{
    return etch_orders_add_absent(v, list_present(v, 0, PRESENT, failing, false), failing, passing);
}

bool etch_order_holds(const struct etch_lab_order *o, struct etch_lab_events events)
{
    uint32_t before = etch_moment_find(events, &o->before), after = etch_moment_find(events, &o->after);

    return before < events.n && (after == events.n ? o->absent : before < after);
}

bool etch_moment_back(struct etch_lab_events events, const struct etch_lab_event *event, uint32_t back,
                      struct etch_lab_moment *moment)
{
    uint32_t i = etch_moment_find(events, event);

    if (i == events.n)
        return false;
    while (back && i-- > 0)
        if (events.v[i].thread == event->thread && events.v[i].sync && --back == 0) {
            *moment = etch_moment_of(&events.v[i]);
            return events.v[i].visit != 0;
        }
    return false;
}

struct etch_lab_rule etch_order_kept(const struct etch_lab_order *o)
{
    return (struct etch_lab_rule){etch_moment_of(&o->before), o->hold_after};
}

struct etch_lab_rule etch_order_turned(const struct etch_lab_order *o)
{
    struct etch_lab_rule rule = {etch_moment_of(&o->after), o->hold_before};

    if (o->whole)
        rule.first = (struct etch_lab_moment){.thread = o->after.thread};
    return rule;
}
