/* SPDX-License-Identifier: MIT */
/* Questions to a finished order. */
#include "decoder/order/graph.h"

#include <stdlib.h>
#include <string.h>

enum etch_relation etch_order_ask(const struct etch_order *o, size_t a, size_t b)
{
    if (a == b)
        return ETCH_SAME;
    if (etch_order_before(o, (uint32_t)a, (uint32_t)b))
        return ETCH_BEFORE;
    return etch_order_before(o, (uint32_t)b, (uint32_t)a) ? ETCH_AFTER : ETCH_UNORDERED;
}

struct chain {
    struct etch_evidence *links;
    size_t n, max;
};

static void add_link(struct chain *chain, enum etch_evidence_kind kind, uint32_t from, uint32_t to)
{
    if (chain->n < chain->max)
        chain->links[chain->n] = (struct etch_evidence){.kind = kind, .from = from, .to = to};
    chain->n++;
}

/* The first event of b's thread that is logically after `a`; b at the latest. */
static uint32_t earliest_after(const struct etch_order *o, uint32_t a, uint32_t b)
{
    uint32_t thread = o->thread[b];
    uint32_t lo = 0, hi = o->position[b];

    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;

        if (etch_order_logical(o, a, etch_event_at(o, thread, middle)))
            hi = middle;
        else
            lo = middle + 1;
    }
    return etch_event_at(o, thread, lo);
}

/* Links from a to b by logical edges, last one first. */
static void walk_back(const struct etch_order *o, uint32_t a, uint32_t b, struct chain *chain)
{
    while (a != b) {
        uint32_t came = b;

        if (o->thread[a] == o->thread[b]) {
            add_link(chain, ETCH_BY_PROGRAM, a, b);
            return;
        }
        came = earliest_after(o, a, b);
        if (came != b)
            add_link(chain, ETCH_BY_PROGRAM, came, b);
        for (uint32_t k = o->in_begin[came]; k < o->in_begin[came + 1]; k++) {
            const struct edge *edge = &o->edges.v[o->in_edge[k]];

            if (edge->from != a && !etch_order_logical(o, a, edge->from))
                continue;
            add_link(chain, edge->kind, edge->from, came);
            b = edge->from;
            break;
        }
        if (b != a && o->thread[b] == o->thread[came])
            return; /* cannot be: the vector clock came by one of these edges */
    }
}

size_t etch_order_why(const struct etch_order *o, size_t x, size_t y, struct etch_evidence *links, size_t max)
{
    struct chain chain = {.links = links, .max = max};
    enum etch_relation relation = etch_order_ask(o, x, y);
    uint32_t a = (uint32_t)(relation == ETCH_AFTER ? y : x);
    uint32_t b = (uint32_t)(relation == ETCH_AFTER ? x : y);

    if (relation != ETCH_BEFORE && relation != ETCH_AFTER)
        return 0;
    if (etch_order_logical(o, a, b)) {
        walk_back(o, a, b, &chain);
    } else if (o->hi[a] < o->lo[b]) {
        add_link(&chain, ETCH_BY_CLOCK, a, b);
    } else {
        walk_back(o, o->l_from[b], b, &chain);
        add_link(&chain, ETCH_BY_CLOCK, o->u_from[a], o->l_from[b]);
        walk_back(o, a, o->u_from[a], &chain);
    }
    for (size_t i = 0, n = chain.n < max ? chain.n : max; i < n / 2; i++) {
        struct etch_evidence swap = links[i];

        links[i] = links[n - 1 - i];
        links[n - 1 - i] = swap;
    }
    return chain.n;
}

const struct etch_conflict *etch_order_conflicts(const struct etch_order *o, size_t *n)
{
    *n = o->conflicts.n;
    return o->conflicts.v;
}

const uint32_t *etch_order_sequence(const struct etch_order *o)
{
    return o->sequence;
}

void etch_order_measure(const struct etch_order *o, struct etch_order_size *size)
{
    size->events = o->n;
    size->edges = o->edges.n;
    size->rows = o->rows.n / (o->threads ? o->threads : 1);
    size->turns = o->turns;
    size->bounded = o->held_bounded + o->bounded;
    size->bytes = o->n * (4 * sizeof(int64_t) + 9 * sizeof(uint32_t)) +
                  o->edges.capacity * (sizeof(struct edge) + sizeof(uint32_t)) + o->rows.capacity * sizeof(uint32_t) +
                  o->sections.capacity * sizeof(struct section);
}
