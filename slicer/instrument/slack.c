/* SPDX-License-Identifier: MIT */
/* Where recording code asks whether its chunk has room. A chunk ends with slack (soft_layout.h), so not each byte need
 * ask: it is enough that never more than the slack is written between two that do. What is known of code elsewhere is a
 * contract: a function is entered with at most AT_ENTRY bytes since somebody asked, and left with at most AT_EXIT. So
 * what calls nothing and does not loop need not ask at all, nor needs a frame to be found by. */
#include "slicer/instrument/model.h"

#include <stdlib.h>
#include <string.h>

#define AT_ENTRY 64u
#define AT_EXIT 80u
#define WITHIN 128u

_Static_assert(WITHIN + AT_EXIT + 2 * ETCH_SOFT_ENTRY_SIZE < ETCH_SOFT_SLACK, "what nobody asks for fits the slack");

struct room {
    struct flow_graph *g;
    uint32_t *used;  /* by node: bytes since somebody asked, at most */
    uint32_t *least; /* the same, by ways back that need no byte */
    uint32_t *place; /* of a node in the order */
    bool changed;
};

static void reach(struct room *room, uint32_t node, uint32_t used)
{
    if (node != NO_NODE && used > room->used[node])
        room->used[node] = used;
}

static void go_along(struct room *room, uint32_t at, struct edge *edge, uint32_t used)
{
    bool back = edge->target != NO_NODE && room->place[edge->target] <= room->place[at];

    if (edge->cut && !edge->silent) {
        edge->asks |= used + 1 > WITHIN;
        used = edge->asks ? 0 : used + 1;
    }
    if (back && used > room->used[edge->target]) {
        room->changed = true;
        if (edge->cut && !edge->silent)
            edge->asks = true; /* so each round does */
        else
            room->least[edge->target] = used;
        return;
    }
    reach(room, edge->target, used);
}

/* A node that ends with a call, a return, or a computed goto, whose target asks. */
static void end(struct room *room, struct node *n, uint32_t used)
{
    uint32_t most = n->kind == ETCH_SOFT_CALL ? AT_ENTRY : n->kind == ETCH_SOFT_RETURN ? AT_EXIT : WITHIN;
    const struct edge *edge = &room->g->edges.v[n->first_edge];

    n->asks |= used + !edge->silent > most;
    if (n->kind == ETCH_SOFT_CALL)
        reach(room, edge->target, AT_EXIT);
}

static void pass(struct room *room, uint32_t at)
{
    struct flow_graph *g = room->g;
    struct node *n = &g->nodes.v[at];
    uint32_t used = n->tells || n->lands ? 0 : room->used[at];

    if (n->kind != ETCH_SOFT_FLOW)
        end(room, n, used);
    for (uint32_t k = 0; k < n->n_edges && n->kind == ETCH_SOFT_FLOW; k++)
        go_along(room, at, &g->edges.v[n->first_edge + k], used);
}

static bool needs_frame(const struct flow_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct node *n = &g->nodes.v[i];

        if (n->asks || n->tells || n->lands || n->kind == ETCH_SOFT_CALL || n->kind == ETCH_SOFT_RESUME ||
            n->unwind != NO_NODE)
            return true;
        for (uint32_t k = 0; k < n->n_edges; k++)
            if (g->edges.v[n->first_edge + k].asks)
                return true;
    }
    return false;
}

bool etch_ask_for_room(struct flow_graph *g)
{
    struct room room = {.g = g,
                        .used = calloc(g->nodes.n, sizeof(uint32_t)),
                        .least = calloc(g->nodes.n, sizeof(uint32_t)),
                        .place = calloc(g->nodes.n, sizeof(uint32_t)),
                        .changed = true};
    bool whole = room.used && room.least && room.place;

    if (whole) {
        room.least[0] = AT_ENTRY;
        for (uint32_t i = 0; i < g->n_order; i++)
            room.place[g->order[i]] = i;
    }
    while (whole && room.changed) { /* each time asks one more, or a way back is known to need more, up to WITHIN */
        room.changed = false;
        memcpy(room.used, room.least, g->nodes.n * sizeof(uint32_t));
        for (uint32_t i = 0; i < g->n_order; i++)
            pass(&room, g->order[i]);
    }
    g->calls = needs_frame(g);
    free(room.used);
    free(room.least);
    free(room.place);
    return whole;
}
