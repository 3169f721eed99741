/* SPDX-License-Identifier: MIT */
/* A pass over the graph: sort, bounds and vector clocks from the edges so far. */
#include "decoder/order/graph.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* The edges into each event, side by side. */
static bool index_edges(struct etch_order *o)
{
    uint32_t *edge = realloc(o->in_edge, (o->edges.n + 1) * sizeof(*edge));

    if (!edge)
        return false;
    o->in_edge = edge;
    memset(o->in_begin, 0, (o->n + 1) * sizeof(*o->in_begin));
    for (size_t i = 0; i < o->edges.n; i++) {
        ETCH_ASSERT(o->edges.v[i].from < o->n && o->edges.v[i].to < o->n);
        o->in_begin[o->edges.v[i].to]++;
    }
    for (size_t i = 0, sum = 0; i <= o->n; i++) {
        sum += o->in_begin[i];
        o->in_begin[i] = (uint32_t)sum;
    }
    for (size_t i = o->edges.n; i-- > 0;)
        o->in_edge[--o->in_begin[o->edges.v[i].to]] = (uint32_t)i;
    return true;
}

/* Places the events of each thread in turn, until an event waits for an event that is not placed yet. The thread is
 * then noted at the awaited event. Returns the number of placed events: fewer than n means a cycle among the logical
 * edges. */
static size_t sort_topologically(struct etch_order *o, bool *placed, uint32_t *waiting, uint32_t *next_waiting,
                                 uint32_t *cursor, uint32_t *queue)
{
    size_t n = 0, head = 0, tail = 0;

    memset(placed, 0, o->n * sizeof(*placed));
    memset(waiting, 0xff, o->n * sizeof(*waiting));
    memset(cursor, 0, o->threads * sizeof(*cursor));
    for (uint32_t t = 0; t < o->threads; t++)
        queue[tail++ % o->threads] = t;
    while (head != tail) {
        uint32_t t = queue[head++ % o->threads];

        while (cursor[t] < etch_thread_size(o, t)) {
            uint32_t e = etch_event_at(o, t, cursor[t]);
            uint32_t k = o->in_begin[e];

            while (k < o->in_begin[e + 1] && placed[o->edges.v[o->in_edge[k]].from])
                k++;
            if (k < o->in_begin[e + 1]) {
                uint32_t awaited = o->edges.v[o->in_edge[k]].from;

                next_waiting[t] = waiting[awaited];
                waiting[awaited] = t;
                break;
            }
            placed[e] = true;
            o->topological[n++] = e;
            cursor[t]++;
            for (uint32_t w = waiting[e]; w != UINT32_MAX; w = next_waiting[w]) {
                ETCH_ASSERT(tail - head < o->threads); /* a thread waits at one place at most */
                queue[tail++ % o->threads] = w;
            }
        }
    }
    return n;
}

void etch_order_push_bounds(struct etch_order *o)
{
    for (size_t i = 0; i < o->n; i++) {
        uint32_t e = o->topological[i];
        uint32_t thread = o->thread[e];

        o->l[e] = o->lo[e];
        o->l_from[e] = e;
        if (o->position[e] > 0) {
            uint32_t p = etch_event_at(o, thread, o->position[e] - 1);

            if (o->l[p] > o->l[e]) {
                o->l[e] = o->l[p];
                o->l_from[e] = o->l_from[p];
            }
        }
        for (uint32_t k = o->in_begin[e]; k < o->in_begin[e + 1]; k++) {
            uint32_t p = o->edges.v[o->in_edge[k]].from;

            if (o->l[p] > o->l[e]) {
                o->l[e] = o->l[p];
                o->l_from[e] = o->l_from[p];
            }
        }
    }
}

static void lower(struct etch_order *o, uint32_t p, uint32_t e)
{
    if (o->u[e] < o->u[p]) {
        o->u[p] = o->u[e];
        o->u_from[p] = o->u_from[e];
    }
}

static void pull_bounds(struct etch_order *o)
{
    for (size_t i = 0; i < o->n; i++) {
        o->u[i] = o->hi[i];
        o->u_from[i] = (uint32_t)i;
    }
    for (size_t i = o->n; i-- > 0;) {
        uint32_t e = o->topological[i];

        for (uint32_t k = o->in_begin[e]; k < o->in_begin[e + 1]; k++)
            lower(o, o->edges.v[o->in_edge[k]].from, e);
        if (o->position[e] > 0)
            lower(o, etch_event_at(o, o->thread[e], o->position[e] - 1), e);
    }
}

/* Joins what the source of an edge has behind it into `row`. True if that was news. */
static bool join(const struct etch_order *o, uint32_t *row, uint32_t from)
{
    const uint32_t *theirs = &o->rows.v[(size_t)o->row[from] * o->threads];
    uint32_t thread = o->thread[from];
    uint32_t changed = 0;

    for (uint32_t t = 0; t < o->threads; t++) {
        changed |= theirs[t] > row[t];
        row[t] = theirs[t] > row[t] ? theirs[t] : row[t];
    }
    if (o->position[from] + 1 > row[thread]) {
        row[thread] = o->position[from] + 1;
        changed = 1;
    }
    return changed != 0;
}

/* Vector clocks in topological order. An event without news shares that of the event before it. */
static bool set_rows(struct etch_order *o, uint32_t *scratch)
{
    o->rows.n = 0;
    if (o->threads == 0)
        return true;
    if (!etch_array_reserve(&o->rows, o->threads))
        return false;
    memset(o->rows.v, 0, o->threads * sizeof(uint32_t)); /* row 0: nothing known */
    o->rows.n = o->threads;
    for (size_t i = 0; i < o->n; i++) {
        uint32_t e = o->topological[i];
        uint32_t at = o->position[e];
        bool news = false;

        o->row[e] = at > 0 ? o->row[etch_event_at(o, o->thread[e], at - 1)] : 0;
        if (o->in_begin[e] == o->in_begin[e + 1])
            continue;
        memcpy(scratch, &o->rows.v[(size_t)o->row[e] * o->threads], o->threads * sizeof(uint32_t));
        for (uint32_t k = o->in_begin[e]; k < o->in_begin[e + 1]; k++)
            news |= join(o, scratch, o->edges.v[o->in_edge[k]].from);
        if (!news)
            continue;
        if (!etch_array_reserve(&o->rows, o->rows.n + o->threads))
            return false;
        memcpy(&o->rows.v[o->rows.n], scratch, o->threads * sizeof(uint32_t));
        o->row[e] = (uint32_t)(o->rows.n / o->threads);
        o->rows.n += o->threads;
    }
    return true;
}

bool etch_order_bounds_crossed(const struct etch_order *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->l[i] > o->hi[i])
            return true;
    return false;
}

/* Sorts the events, then sets bounds and vector clocks from the edges so far. */
enum etch_order_result etch_order_pass(struct etch_order *o)
{
    bool *placed = malloc(o->n * sizeof(*placed) + 1);
    uint32_t *scratch = malloc((o->n + 4 * (size_t)o->threads + 4) * sizeof(*scratch));
    enum etch_order_result result = ETCH_ORDER_MEMORY;

    if (!placed || !scratch || !index_edges(o))
        goto out;
    result = ETCH_ORDER_CONFLICT;
    if (sort_topologically(o, placed, scratch, scratch + o->n, scratch + o->n + o->threads,
                           scratch + o->n + 2 * (size_t)o->threads) < o->n) {
        if (o->blaming && etch_order_blame_records(o, placed) < 0)
            result = ETCH_ORDER_MEMORY;
        goto out;
    }
    etch_order_push_bounds(o);
    if (etch_order_bounds_crossed(o)) {
        if (o->blaming && etch_order_blame_clock(o) < 0)
            result = ETCH_ORDER_MEMORY;
        goto out;
    }
    pull_bounds(o);
    result = set_rows(o, scratch) ? ETCH_ORDER_GOOD : ETCH_ORDER_MEMORY;
out:
    free(placed);
    free(scratch);
    return result;
}
