/* SPDX-License-Identifier: MIT */
/* Edges from barriers: nobody leaves a generation before all have entered it. */
#include "decoder/order/sync.h"

#include <stdlib.h>
#include <string.h>

/* The part that one thread took in a barrier: its enters and leaves, in turn. */
struct part {
    uint32_t thread;
    size_t enters, leaves;
};

/* Counts the parts of n events, which are sorted by thread and place. */
static bool same_parts(const struct etch_order *o, const uint32_t *v, size_t n, size_t *threads, size_t *generations)
{
    size_t enters = 0, leaves = 0, serial = 0, first_leaves = 0, inits = 0;
    uint64_t count = 0;

    *threads = 0;
    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i]];
        bool last = i + 1 == n || o->thread[v[i + 1]] != e->thread;

        enters += e->op == ETCH__SYNC_OP__SYNC_BARRIER_ENTER;
        leaves += e->op == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE;
        serial += e->op == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE && e->result != 0;
        if (e->op == ETCH__SYNC_OP__SYNC_BARRIER_INIT) {
            count = e->other;
            inits++;
        }
        if (!last)
            continue;
        if (enters == 0 && leaves == 0)
            continue; /* who only made it */
        if (*threads == 0)
            first_leaves = leaves;
        if (leaves != first_leaves || enters < leaves || enters > leaves + 1)
            return false;
        ++*threads;
        enters = leaves = 0;
    }
    *generations = first_leaves;
    /* Each generation has one serial thread, so as many threads as take part are let through at a time: each takes part
     * in each. */
    return first_leaves > 0 && !(inits && count == 0) && (serial == first_leaves || (inits == 1 && count == *threads));
}

/* Every enter of a generation is before every leave of it: enters[g * threads + t]. */
static bool link_generations(struct etch_order *o, const uint32_t *enters, const uint32_t *leaves, size_t threads,
                             size_t generations)
{
    for (size_t g = 0; g < generations; g++)
        for (size_t x = 0; x < threads; x++)
            for (size_t y = 0; y < threads; y++)
                if (!etch_order_edge(o, enters[g * threads + x], leaves[g * threads + y], ETCH_BY_BARRIER))
                    return false;
    return true;
}

static bool link_barrier(struct etch_order *o, const struct keyed *list, size_t n)
{
    uint32_t *v = malloc(3 * n * sizeof(*v));
    size_t threads, generations;
    bool good = v != NULL;

    for (size_t i = 0; good && i < n; i++)
        v[i] = list[i].event;
    if (good)
        qsort_r(v, n, sizeof(*v), etch_by_thread_and_place, o);
    if (good && same_parts(o, v, n, &threads, &generations)) {
        uint32_t *enters = v + n, *leaves = v + 2 * n;
        size_t t = 0, enter = 0, leave = 0;

        for (size_t i = 0; i < n; i++) {
            const struct etch_event *e = &o->in->events[v[i]];
            bool last = i + 1 == n || o->thread[v[i + 1]] != e->thread;

            if (e->op == ETCH__SYNC_OP__SYNC_BARRIER_ENTER && enter++ < generations)
                enters[(enter - 1) * threads + t] = v[i];
            if (e->op == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE)
                leaves[leave++ * threads + t] = v[i];
            if (last && (enter || leave)) {
                t++;
                enter = leave = 0;
            }
        }
        good = link_generations(o, enters, leaves, threads, generations);
    }
    free(v);
    return good;
}

bool etch_order_link_barriers(struct etch_order *o)
{
    struct keyed_list list;
    bool good;

    if (o->sync_lost)
        return true; /* counting is worth nothing where some may be missing */
    good = etch_sync_events(o, OP(BARRIER_INIT) | OP(BARRIER_ENTER) | OP(BARRIER_LEAVE), &list);
    for (size_t i = 0, end; good && i < list.n; i = end) {
        end = etch_sync_group_end(&list, i);
        good = link_barrier(o, list.v + i, end - i);
    }
    free(list.v);
    return good;
}
