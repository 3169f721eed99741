/* SPDX-License-Identifier: MIT */
/* The number of the path so far, as a value of the function: it starts at ETCH_SOFT_PATH with each segment, and edges
 * add to it. */
#include "slicer/instrument/path_count.h"

#include <stdlib.h>

LLVMValueRef etch_count_along(struct emitter *e, const struct node *from, const struct edge *edge)
{
    if (!edge->value)
        return from->count;
    return LLVMBuildAdd(e->builder, from->count, etch_emit_byte(e, edge->value), "");
}

struct arrival {
    uint32_t from;
    const struct edge *edge;
};

typedef ETCH_ARRAY(struct arrival) arrivals;

/* Several edges lead here: a PHI of their counts. A cut edge starts a new count. */
static void join(struct emitter *e, struct flow_graph *g, struct node *n, const arrivals *from)
{
    LLVMValueRef phi, value;

    etch_emit_before(e, LLVMGetFirstInstruction(n->block));
    phi = LLVMBuildPhi(e->builder, e->byte, "");
    for (size_t i = 0; i < from->n; i++) {
        struct node *p = &g->nodes.v[from->v[i].from];

        etch_emit_before(e, p->end);
        value = from->v[i].edge->cut ? etch_emit_byte(e, ETCH_SOFT_PATH) : etch_count_along(e, p, from->v[i].edge);
        LLVMAddIncoming(phi, &value, &p->block, 1);
    }
    n->count = phi;
}

/* A PHI needs one value for each edge, and a switch may have several edges to one block. */
static void repeat_incoming(const struct node *n, LLVMValueRef phi)
{
    unsigned had = LLVMCountIncoming(phi);

    for (unsigned i = 0; i < had; i++) {
        LLVMBasicBlockRef block = LLVMGetIncomingBlock(phi, i);
        LLVMValueRef value = LLVMGetIncomingValue(phi, i), t = LLVMGetBasicBlockTerminator(block);
        unsigned times = 0;

        for (unsigned k = 0; k < LLVMGetNumSuccessors(t); k++)
            times += LLVMGetSuccessor(t, k) == n->block;
        for (; times > 1; times--)
            LLVMAddIncoming(phi, &value, &block, 1);
    }
}

/* Groups all edges by target. */
static bool collect_arrivals(const struct flow_graph *g, arrivals *in)
{
    for (uint32_t i = 0; i < g->n_order; i++) {
        const struct node *n = &g->nodes.v[g->order[i]];

        for (uint32_t k = 0; k < n->n_edges; k++) {
            const struct edge *edge = &g->edges.v[n->first_edge + k];

            if (edge->target != NO_NODE && !etch_array_push(&in[edge->target], ((struct arrival){g->order[i], edge})))
                return false;
        }
    }
    return true;
}

static void count_at(struct emitter *e, struct flow_graph *g, struct node *n, const arrivals *in)
{
    bool continued = false;

    n->count = etch_emit_byte(e, ETCH_SOFT_PATH);
    for (size_t i = 0; i < in->n; i++)
        continued |= !in->v[i].edge->cut && g->nodes.v[in->v[i].from].live;
    if (!n->live || !continued)
        return;
    if (in->n > 1) {
        join(e, g, n, in);
        repeat_incoming(n, n->count);
    } else {
        etch_emit_before(e, n->begin);
        n->count = etch_count_along(e, &g->nodes.v[in->v[0].from], in->v[0].edge);
    }
}

/* In the graph's order: the counts of predecessors are built first. */
bool etch_count_paths(struct emitter *e, struct flow_graph *g)
{
    arrivals *in = calloc(g->nodes.n, sizeof(*in));
    bool whole = in && collect_arrivals(g, in);

    for (uint32_t i = 0; i < g->n_order && whole; i++)
        count_at(e, g, &g->nodes.v[g->order[i]], &in[g->order[i]]);
    for (uint32_t i = 0; in && i < g->nodes.n; i++)
        etch_array_free(&in[i]);
    free(in);
    return whole;
}
