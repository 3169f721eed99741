/* SPDX-License-Identifier: MIT */
/* The checks of a chunk's slack in recording code. A chunk ends with ETCH_SOFT_SLACK spare bytes (soft_layout.h), so
 * not each byte needs a check: never more bytes than the slack may be written between two checks. Functions keep a
 * contract: at most AT_ENTRY bytes since the last check on entry, at most AT_EXIT on return. So a function without
 * calls and loops needs no check, and no frame for one. */
#include "slicer/instrument/rest.h"

#include <stdlib.h>
#include <string.h>

#define AT_ENTRY 64u
#define AT_EXIT 80u
#define WITHIN 128u

_Static_assert(WITHIN + AT_EXIT + 2 * ETCH_SOFT_ENTRY_SIZE < ETCH_SOFT_SLACK,
               "the bytes without a check fit the slack");

struct slack_check {
    struct flow_graph *g;
    uint32_t *used;  /* by node: most bytes since the last check */
    uint32_t *least; /* the same by back edges that write no byte */
    uint32_t *place; /* of a node in the order */
    bool changed;
};

static void reach(struct slack_check *check, uint32_t node, uint32_t used)
{
    if (node != NO_NODE && used > check->used[node])
        check->used[node] = used;
}

static void go_along(struct slack_check *check, uint32_t at, struct edge *edge, uint32_t used)
{
    bool back = edge->target != NO_NODE && check->place[edge->target] <= check->place[at];

    if (edge->cut && !edge->silent) {
        edge->checks_slack |= used + 1 > WITHIN;
        used = edge->checks_slack ? 0 : used + 1;
    }
    if (back && used && etch_rest_is_at(check->g, edge)) { /* a loop that can be left looks once each round */
        edge->checks_slack = true;
        used = 0;
    }
    if (back && used > check->used[edge->target]) {
        check->changed = true;
        if (edge->cut && !edge->silent)
            edge->checks_slack = true; /* so each round checks */
        else
            check->least[edge->target] = used;
        return;
    }
    reach(check, edge->target, used);
}

/* A node that ends with a call, a return, or a computed goto. The target of a goto checks. */
static void end(struct slack_check *check, struct node *n, uint32_t used)
{
    uint32_t most = n->kind == ETCH_SOFT_CALL ? AT_ENTRY : n->kind == ETCH_SOFT_RETURN ? AT_EXIT : WITHIN;
    const struct edge *edge = &check->g->edges.v[n->first_edge];

    n->checks_slack |= used + !edge->silent > most;
    if (n->kind == ETCH_SOFT_CALL)
        reach(check, edge->target, AT_EXIT);
}

static void pass(struct slack_check *check, uint32_t at)
{
    struct flow_graph *g = check->g;
    struct node *n = &g->nodes.v[at];
    uint32_t used = n->reports || n->lands ? 0 : check->used[at];

    if (n->kind != ETCH_SOFT_FLOW)
        end(check, n, used);
    for (uint32_t k = 0; k < n->n_edges && n->kind == ETCH_SOFT_FLOW; k++)
        go_along(check, at, &g->edges.v[n->first_edge + k], used);
}

static bool has_check(const struct flow_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct node *n = &g->nodes.v[i];

        if (n->checks_slack || n->reports)
            return true;
        for (uint32_t k = 0; k < n->n_edges; k++)
            if (g->edges.v[n->first_edge + k].checks_slack)
                return true;
    }
    return false;
}

static bool needs_frame(const struct flow_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct node *n = &g->nodes.v[i];

        if (n->lands || n->kind == ETCH_SOFT_CALL || n->kind == ETCH_SOFT_RESUME || n->unwind != NO_NODE)
            return true;
    }
    return g->checks;
}

bool etch_slack_check(struct flow_graph *g)
{
    struct slack_check check = {.g = g,
                                .used = calloc(g->nodes.n, sizeof(uint32_t)),
                                .least = calloc(g->nodes.n, sizeof(uint32_t)),
                                .place = calloc(g->nodes.n, sizeof(uint32_t)),
                                .changed = true};
    bool whole = check.used && check.least && check.place;

    if (whole) {
        check.least[0] = AT_ENTRY;
        for (uint32_t i = 0; i < g->n_order; i++)
            check.place[g->order[i]] = i;
    }
    while (whole && check.changed) { /* each round adds a check, or finds more bytes on a back edge, up to WITHIN */
        check.changed = false;
        memcpy(check.used, check.least, g->nodes.n * sizeof(uint32_t));
        for (uint32_t i = 0; i < g->n_order; i++)
            pass(&check, g->order[i]);
    }
    g->checks = has_check(g);
    g->calls = needs_frame(g);
    free(check.used);
    free(check.least);
    free(check.place);
    return whole;
}
