/* SPDX-License-Identifier: MIT */
/* Nodes, segments and path numbers; see model.h. The numbering is that of Ball and Larus (MICRO 1996). Without the cut
 * edges the graph has no cycle. The number of a path from a segment's begin to one of its ends is the sum of the values
 * of its edges. Each path has a number of its own, below the number of such paths. */
#include "slicer/instrument/model.h"

#include <stdlib.h>
#include <string.h>

/* vfork is not among them: its child shares the memory, and with it the ring. */
static const char *const fork_names[] = {"fork", "_Fork", "daemon", "forkpty"};

static const char *callee_name(LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    size_t n;

    return callee && LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &n) : "";
}

bool etch_call_forks(LLVMValueRef call)
{
    const char *name = callee_name(call);

    for (size_t i = 0; i < sizeof(fork_names) / sizeof(fork_names[0]); i++)
        if (strcmp(name, fork_names[i]) == 0)
            return true;
    return false;
}

static unsigned attribute_kind(const char *name)
{
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

bool etch_has_attribute(LLVMValueRef function, const char *name)
{
    return LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                       attribute_kind(name)) != NULL;
}

bool etch_call_returns_twice(LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);

    return LLVMGetCallSiteEnumAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                        attribute_kind("returns_twice")) ||
           (callee && LLVMIsAFunction(callee) && etch_has_attribute(callee, "returns_twice"));
}

/* ---- Nodes ---- */

static bool is_call(LLVMValueRef instruction)
{
    return LLVMIsACallInst(instruction) != NULL;
}

static struct node *add_node(struct flow_graph *g, LLVMBasicBlockRef block, LLVMValueRef begin)
{
    struct node node = {.block = block, .begin = begin, .unwind = NO_NODE};

    return etch_array_push(&g->nodes, node) ? &g->nodes.v[g->nodes.n - 1] : NULL;
}

/* The first instruction that other code may be put before. */
static LLVMValueRef first_place(LLVMBasicBlockRef block)
{
    LLVMValueRef i = LLVMGetFirstInstruction(block);

    while (i && (LLVMIsAPHINode(i) || LLVMIsALandingPadInst(i)))
        i = LLVMGetNextInstruction(i);
    return i;
}

bool etch_is_tail_call(LLVMValueRef call)
{
    LLVMValueRef next = LLVMGetNextInstruction(call);

    return LLVMIsACallInst(call) && LLVMIsTailCall(call) && next && LLVMIsAReturnInst(next) &&
           (LLVMGetNumOperands(next) == 0 || LLVMGetOperand(next, 0) == call);
}

static bool cut_block(struct flow_graph *g, LLVMBasicBlockRef block, call_classifier *classify, void *context)
{
    LLVMValueRef i = first_place(block);
    struct node *node = i ? add_node(g, block, i) : NULL;

    if (!node)
        return false;
    if (!etch_pointers_set(&g->first_of, block, (uint32_t)(g->nodes.n - 1)))
        return false;
    node->lands = LLVMIsALandingPadInst(LLVMGetFirstInstruction(block)) != NULL ||
                  (LLVMGetPreviousInstruction(i) && LLVMIsALandingPadInst(LLVMGetPreviousInstruction(i)));
    for (; i; i = LLVMGetNextInstruction(i)) {
        enum call_kind kind = is_call(i) ? classify(context, i) : CALL_PLAIN;
        bool twice, tail;

        node->end = i;
        if (kind == CALL_PLAIN)
            continue;
        twice = etch_call_returns_twice(i) || etch_call_forks(i);
        tail = etch_is_tail_call(i) && !twice;
        node->kind = ETCH_SOFT_CALL;
        node->known_call = kind == CALL_KNOWN;
        node->stubbed = kind == CALL_STUBBED;
        node = add_node(g, block, LLVMGetNextInstruction(i));
        if (!node)
            return false;
        node->lands = twice;
        node->forks = etch_call_forks(i);
        node->unmarked = tail;
    }
    return true;
}

static bool cut_blocks(struct flow_graph *g, call_classifier *classify, void *context)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(g->function);

    for (; block; block = LLVMGetNextBasicBlock(block))
        if (!cut_block(g, block, classify, context))
            return false;
    return true;
}

/* ---- Edges ---- */

static bool add_edge(struct flow_graph *g, uint32_t from, uint32_t to, bool cut)
{
    struct edge edge = {.target = to, .cut = cut};
    struct node *n = &g->nodes.v[from];

    for (uint32_t i = 0; i < n->n_edges; i++)
        if (g->edges.v[n->first_edge + i].target == to)
            return true; /* several cases of one switch */
    n->n_edges++;
    return etch_array_push(&g->edges, edge);
}

static uint32_t first_of(const struct flow_graph *g, LLVMBasicBlockRef block)
{
    return etch_pointers_get(&g->first_of, block);
}

static void report(struct flow_graph *g, uint32_t target)
{
    struct node *n = &g->nodes.v[target];

    if (!n->reports)
        n->reports = ++g->n_reports;
}

static unsigned count_targets(LLVMValueRef terminator)
{
    return LLVMGetNumSuccessors(terminator);
}

static bool connect_terminator(struct flow_graph *g, uint32_t at, call_classifier *classify, void *context)
{
    LLVMValueRef t = g->nodes.v[at].end;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(t);

    if (opcode == LLVMInvoke) {
        struct node *n = &g->nodes.v[at];
        bool plain = classify(context, t) == CALL_PLAIN;

        n->kind = plain ? ETCH_SOFT_FLOW : ETCH_SOFT_CALL;
        n->known_call = classify(context, t) == CALL_KNOWN;
        n->stubbed = classify(context, t) == CALL_STUBBED;
        n->unwind = first_of(g, LLVMGetUnwindDest(t));
        return add_edge(g, at, first_of(g, LLVMGetNormalDest(t)), true);
    }
    if (opcode == LLVMBr || (opcode == LLVMSwitch && count_targets(t) <= ETCH_SOFT_PATHS)) {
        for (unsigned i = 0; i < count_targets(t); i++)
            if (!add_edge(g, at, first_of(g, LLVMGetSuccessor(t, i)), false))
                return false;
        return true;
    }
    if (opcode == LLVMSwitch || opcode == LLVMIndirectBr) {
        g->nodes.v[at].kind = ETCH_SOFT_COMPUTED;
        for (unsigned i = 0; i < count_targets(t); i++)
            report(g, first_of(g, LLVMGetSuccessor(t, i)));
    } else {
        g->nodes.v[at].kind = opcode == LLVMResume ? ETCH_SOFT_RESUME : ETCH_SOFT_RETURN;
    }
    return add_edge(g, at, NO_NODE, true);
}

static bool connect(struct flow_graph *g, call_classifier *classify, void *context)
{
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        g->nodes.v[i].first_edge = (uint32_t)g->edges.n;
        if (LLVMIsATerminatorInst(g->nodes.v[i].end)) {
            if (!connect_terminator(g, i, classify, context))
                return false;
        } else if (!add_edge(g, i, i + 1, true)) {
            return false;
        }
    }
    return true;
}

/* ---- Order, and back edges ---- */

enum { UNSEEN, OPEN, DONE };

struct visit {
    uint32_t node;
    uint32_t next; /* edge */
};

/* Everything that control can reach from a node, in the order of `next`: its edges, then what has none. */
static uint32_t successor(const struct flow_graph *g, const struct node *n, uint32_t next, bool *edge)
{
    *edge = next < n->n_edges;
    if (*edge)
        return g->edges.v[n->first_edge + next].target;
    next -= n->n_edges;
    if (n->unwind != NO_NODE)
        return next == 0 ? n->unwind : NO_NODE;
    if (n->kind == ETCH_SOFT_COMPUTED)
        return next < count_targets(n->end) ? first_of(g, LLVMGetSuccessor(n->end, next)) : NO_NODE;
    return NO_NODE;
}

static uint32_t n_successors(const struct node *n)
{
    return n->n_edges + (n->unwind != NO_NODE) + (n->kind == ETCH_SOFT_COMPUTED ? count_targets(n->end) : 0);
}

/* Depth first from the entry, without recursion: functions can be long. */
static bool search(struct flow_graph *g)
{
    uint8_t *state = calloc(g->nodes.n, 1);
    struct visit *stack = calloc(g->nodes.n, sizeof(*stack));
    size_t depth = 0;

    g->order = calloc(g->nodes.n, sizeof(*g->order));
    if (!state || !stack || !g->order) {
        free(state);
        free(stack);
        return false;
    }
    stack[depth++] = (struct visit){0, 0};
    state[0] = OPEN;
    while (depth) {
        struct visit *v = &stack[depth - 1];
        const struct node *n = &g->nodes.v[v->node];
        bool edge;
        uint32_t to;

        if (v->next == n_successors(n)) {
            state[v->node] = DONE;
            g->order[g->n_order++] = v->node;
            depth--;
            continue;
        }
        to = successor(g, n, v->next++, &edge);
        if (to == NO_NODE)
            continue;
        if (state[to] == UNSEEN) {
            state[to] = OPEN;
            stack[depth++] = (struct visit){to, 0};
        } else if (state[to] == OPEN && edge) {
            g->edges.v[n->first_edge + v->next - 1].cut = true;
            g->nodes.v[to].loop = true;
        }
    }
    for (uint32_t i = 0; i < g->n_order / 2; i++) {
        uint32_t swap = g->order[i];

        g->order[i] = g->order[g->n_order - 1 - i];
        g->order[g->n_order - 1 - i] = swap;
    }
    free(state);
    free(stack);
    return true;
}

/* ---- Segments and numbers ---- */

static uint32_t number_edges(struct flow_graph *g, const struct node *n)
{
    uint32_t paths = 0;

    for (uint32_t i = 0; i < n->n_edges; i++) {
        struct edge *e = &g->edges.v[n->first_edge + i];

        e->value = paths;
        paths += e->cut ? 1 : g->nodes.v[e->target].paths;
    }
    return paths;
}

/* The node has more paths than a byte can number: segments end on the edges that lead to many paths. If they ended only
 * on the widest edge, the next branch before this node would have too many paths again. */
static void cut_wide(struct flow_graph *g, const struct node *n)
{
    const uint32_t many = 16;
    struct edge *widest = NULL;
    bool any = false;

    for (uint32_t i = 0; i < n->n_edges; i++) {
        struct edge *e = &g->edges.v[n->first_edge + i];

        if (e->cut)
            continue;
        if (!widest || g->nodes.v[e->target].paths > g->nodes.v[widest->target].paths)
            widest = e;
        e->cut = g->nodes.v[e->target].paths > many;
        any |= e->cut;
    }
    if (!any && widest)
        widest->cut = true;
}

/* True if the only path from a node ends at a computed goto. The target of the goto reports. */
static bool is_reported_anyway(const struct flow_graph *g, const struct node *n)
{
    for (uint32_t i = 0; i < g->nodes.n && n->n_edges == 1; i++) {
        const struct edge *e = &g->edges.v[n->first_edge];

        if (e->cut)
            return n->kind == ETCH_SOFT_COMPUTED;
        n = &g->nodes.v[e->target];
    }
    return false;
}

/* No segment continues into such a node. A segment in a loop around a computed goto would only write what the target
 * reports. */
static bool begins_alone(const struct flow_graph *g, const struct node *n)
{
    return n->reports || n->lands || (n->loop && is_reported_anyway(g, n));
}

/* True if an edge of a node goes back to a loop's head. */
static bool goes_back(const struct flow_graph *g, const struct node *n, const bool *back)
{
    for (uint32_t k = 0; k < n->n_edges; k++)
        if (back[n->first_edge + k] && g->edges.v[n->first_edge + k].target != NO_NODE)
            return n->kind == ETCH_SOFT_FLOW;
    return false;
}

/* With `apart`, segments end where a loop that could go round is left. Returns whether one had to end for its many
 * ways. */
static bool number(struct flow_graph *g, const bool *back, bool apart)
{
    const uint32_t few = 2;
    bool crowded = false;

    for (uint32_t i = g->n_order; i > 0; i--) {
        struct node *n = &g->nodes.v[g->order[i - 1]];
        bool last = apart && goes_back(g, n, back);

        for (uint32_t k = 0; k < n->n_edges; k++) {
            struct edge *e = &g->edges.v[n->first_edge + k];
            const struct node *to = e->target == NO_NODE ? NULL : &g->nodes.v[e->target];

            e->cut |= to && (begins_alone(g, to) || (last && to->paths > few));
        }
        for (; (n->paths = number_edges(g, n)) > ETCH_SOFT_PATHS; crowded = true)
            cut_wide(g, n);
    }
    return crowded;
}

/* A path that goes on after a loop multiplies the paths of the loop. If there are too many paths, the segment ends
 * after the loop and not in it. */
static bool number_all(struct flow_graph *g)
{
    bool *back = calloc(g->edges.n + 1, sizeof(bool));

    if (!back)
        return false;
    for (size_t i = 0; i < g->edges.n; i++)
        back[i] = g->edges.v[i].cut;
    if (number(g, back, false)) {
        for (size_t i = 0; i < g->edges.n; i++)
            g->edges.v[i].cut = back[i];
        number(g, back, true);
    }
    free(back);
    return true;
}

static void find_heads(struct flow_graph *g)
{
    g->nodes.v[0].head = true;
    for (uint32_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.v[i].reports || g->nodes.v[i].lands)
            g->nodes.v[i].head = true;
    for (size_t i = 0; i < g->edges.n; i++)
        if (g->edges.v[i].cut && g->edges.v[i].target != NO_NODE)
            g->nodes.v[g->edges.v[i].target].head = true;
}

static bool calls_outside(const struct node *n)
{
    return n->kind == ETCH_SOFT_CALL && !n->known_call && !n->stubbed;
}

/* Finds the nodes whose count a byte must report. A loop always counts, so that no iteration is missed. A call of code
 * that may have no recorder is always reported, by a byte or by its stub: a function entered from there is then known
 * to be entered. */
static void find_silent(struct flow_graph *g)
{
    for (uint32_t i = 0; i < g->n_order; i++) {
        struct node *n = &g->nodes.v[g->order[i]];

        if (n->head && (n->paths > 1 || (n->loop && !is_reported_anyway(g, n))))
            n->live = true;
        for (uint32_t k = 0; k < n->n_edges; k++) {
            struct edge *e = &g->edges.v[n->first_edge + k];

            if (!e->cut)
                g->nodes.v[e->target].live |= n->live;
            else if (calls_outside(n) || n->kind == ETCH_SOFT_RESUME)
                n->live = true;
            e->silent = e->cut && (!n->live || LLVMIsAUnreachableInst(n->end));
        }
    }
}

bool etch_flow_graph_build(struct flow_graph *g, LLVMValueRef function, call_classifier *classify, void *context)
{
    memset(g, 0, sizeof(*g));
    g->function = function;
    if (!cut_blocks(g, classify, context) || !connect(g, classify, context) || !search(g) || !number_all(g))
        return false;
    find_heads(g);
    find_silent(g);
    return true;
}

void etch_flow_graph_release(struct flow_graph *g)
{
    etch_array_free(&g->nodes);
    etch_array_free(&g->edges);
    free(g->order);
    etch_pointers_release(&g->first_of);
}
