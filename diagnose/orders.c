/* SPDX-License-Identifier: MIT */
/* See orders.h. */
#include "diagnose/orders.h"

#define PRESENT 40u /* orders of the failing run itself */
#define NEAREST 3u  /* conflicting accesses before each access */

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

static uint32_t list_present(struct etch_lab_order *v, struct etch_lab_events run)
{
    uint32_t n = 0;

    for (uint32_t k = run.n; k-- > 0 && n < PRESENT;)
        for (uint32_t i = k, near = 0; i-- > 0 && near < NEAREST && n < PRESENT;) {
            if (!etch_event_conflicts(&run.v[i], &run.v[k]))
                continue;
            near++;
            if (!is_known(v, n, &run.v[i], &run.v[k]))
                v[n++] = order_of(&run.v[i], &run.v[k], i, k);
        }
    return n;
}

/* The second access of an order may be missing because the program failed first: a use before the initialisation. A
 * passing run has both accesses in the other order. */
uint32_t etch_orders_add_absent(struct etch_lab_order *v, uint32_t n, struct etch_lab_events failing,
                                struct etch_lab_events passing)
{
    for (uint32_t k = passing.n; k-- > 0 && n < ETCH_ORDERS_MAX;)
        for (uint32_t i = k; i-- > 0;) {
            const struct etch_lab_event *early = &passing.v[i], *late = &passing.v[k];

            if (!etch_event_conflicts(early, late) || etch_moment_find(failing, early) < failing.n ||
                etch_moment_find(failing, late) == failing.n)
                continue;
            if (!is_known(v, n, late, early))
                v[n++] = order_of(late, early, etch_moment_find(failing, late), UINT32_MAX);
            break;
        }
    return n;
}

uint32_t etch_orders_list(struct etch_lab_order *v, struct etch_lab_events failing, struct etch_lab_events passing)
{
    return etch_orders_add_absent(v, list_present(v, failing), failing, passing);
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
        if (events.v[i].thread == event->thread && --back == 0) {
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
