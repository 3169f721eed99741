/* SPDX-License-Identifier: MIT */
/* Edges from the stamps of one CPU, if its clock cannot be compared with others'. */
#include "decoder/order/sync.h"

#include <stdlib.h>
#include <string.h>

struct point {
    uint64_t tsc;
    uint32_t cpu, event;
    bool lo;
};

static int by_cpu_and_time(const void *x, const void *y)
{
    const struct point *a = x;
    const struct point *b = y;

    if (a->cpu != b->cpu)
        return a->cpu < b->cpu ? -1 : 1;
    if (a->tsc != b->tsc)
        return a->tsc < b->tsc ? -1 : 1;
    return a->lo == b->lo ? 0 : a->lo ? -1 : 1; /* equal is not before: lower bounds first */
}

static bool local_only(const struct etch_order *o, uint32_t cpu)
{
    return cpu < o->in->n_cpus && !o->in->cpus[cpu].known && o->in->cpus[cpu].local && !o->cpu_blamed[cpu] &&
           !o->clockless;
}

static bool collect_points(const struct etch_order *o, struct point **points, size_t *n)
{
    ETCH_ARRAY(struct point) list = {0};
    bool good = true;

    for (size_t i = 0; good && i < o->n; i++) {
        const struct etch_event *e = &o->in->events[i];
        struct point lo = {.tsc = e->lo.tsc, .cpu = e->lo.cpu, .event = (uint32_t)i, .lo = true};
        struct point hi = {.tsc = e->hi.tsc, .cpu = e->hi.cpu, .event = (uint32_t)i};

        good = (!local_only(o, lo.cpu) || etch_array_push(&list, lo)) &&
               (!local_only(o, hi.cpu) || etch_array_push(&list, hi));
    }
    *points = list.v;
    *n = list.n;
    return good;
}

/* Each thread's first lower bound after another thread's upper bound gets an edge; program order carries it on. */
bool etch_order_link_cpus(struct etch_order *o)
{
    struct point *points;
    size_t n;
    uint32_t last = ETCH_NO_EVENT, other = ETCH_NO_EVENT; /* the newest upper bounds of two different threads */
    bool good = collect_points(o, &points, &n);

    if (good && n)
        qsort(points, n, sizeof(*points), by_cpu_and_time);
    for (size_t i = 0; good && i < n; i++) {
        uint32_t e = points[i].event;
        uint32_t thread = o->thread[e];

        if (i > 0 && points[i].cpu != points[i - 1].cpu)
            last = other = ETCH_NO_EVENT;
        if (!points[i].lo) {
            if (last != ETCH_NO_EVENT && o->thread[last] != thread)
                other = last;
            last = e;
            continue;
        }
        if (last != ETCH_NO_EVENT && o->thread[last] != thread)
            good = etch_order_edge(o, last, e, ETCH_BY_CPU);
        else if (other != ETCH_NO_EVENT)
            good = etch_order_edge(o, other, e, ETCH_BY_CPU);
    }
    free(points);
    return good;
}
