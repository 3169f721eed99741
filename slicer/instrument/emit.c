/* SPDX-License-Identifier: MIT */
/* The recording code itself, as inline assembly: its instructions are what the decoder and a crash see, so they are
 * chosen here rather than by the optimiser. Marks and tables go into sections that are not loaded. */
#include "slicer/instrument/asm_text.h"
#include "slicer/instrument/path_count.h"
#include "slicer/instrument/rest.h"

#include <stdlib.h>
#include <string.h>

#define AFTER_REPORT 0xffu /* as the number of an edge: at the begin of the node */

/* ---- Inserting ---- */

static void add_mark(struct asm_text *t, const struct flow_graph *g, const char *label, uint32_t node,
                     enum etch_soft_mark_kind kind)
{
    etch_asm_add_section(t, ETCH_SOFT_MARK_SECTION, g->function);
    etch_asm_add(t, ".quad %s\n.quad ", label);
    etch_asm_add_symbol(t, g->function);
    etch_asm_add(t, "\n.long %u,%u\n.popsection\n", node, (unsigned)kind);
}

static void mark_node(struct emitter *e, const struct flow_graph *g, uint32_t node, struct asm_text *t)
{
    t->n = 0;
    add_mark(t, g, "0f", node, ETCH_SOFT_MARK_NODE);
    /* Behind a call that does not return the function's code may end, and the mark must not be in the next. */
    etch_asm_add(t, LLVMIsAUnreachableInst(g->nodes.v[node].begin) ? "0:\nud2" : "0:");
    etch_asm_build(e, t, e->void_type, "", NULL, 0);
}

bool etch_emit_mark(struct emitter *e, const struct flow_graph *g, uint32_t node)
{
    struct asm_text t = {0};

    mark_node(e, g, node, &t);
    free(t.v);
    return !t.failed;
}

/* A byte to write, and the edge that the code takes behind it. */
struct record {
    uint32_t node;
    LLVMValueRef value; /* NULL: nothing */
    unsigned edge;
    bool checks_slack; /* also check the slack of the chunk */
};

bool etch_emit_note(struct emitter *e, LLVMValueRef code)
{
    return code && etch_pointers_set(&e->bytes, code, 1);
}

static void write_byte(struct emitter *e, LLVMValueRef value, struct asm_text *t)
{
    bool constant = LLVMIsAConstantInt(value) != NULL;
    LLVMValueRef arguments[2] = {LLVMBuildLoad2(e->builder, e->pointer, e->slot, ""), value}, next,
                 one = LLVMConstInt(e->quad, 1, false);

    t->n = 0;
    if (constant)
        etch_asm_add(t, "movb $$%u, ($0)", (unsigned)(LLVMConstIntGetZExtValue(value) & 0xff));
    else
        etch_asm_add(t, "movb $1, ($0)");
    if (!etch_emit_note(e, etch_asm_build(e, t, e->void_type, constant ? "r" : "r,q", arguments, constant ? 1 : 2)))
        t->failed = true;
    next = LLVMBuildInBoundsGEP2(e->builder, e->byte, arguments[0], &one, 1, "");
    LLVMBuildStore(e->builder, next, e->slot);
}

static void add_turn(const struct flow_graph *g, unsigned edge, struct asm_text *t)
{
    etch_asm_add(t, "pushq $$%u\npushq $0\ncall etch_soft_turn3\n7:\n", edge);
    if (g->lit) {
        etch_asm_add(t, "nopl ");
        etch_asm_add_symbol(t, g->lit);
        etch_asm_add(t, "(%%rip)\n");
    }
    etch_asm_add(t, "popq $0\nleaq 8(%%rsp), %%rsp\n");
}

LLVMValueRef etch_emit_turn(struct emitter *e, const struct flow_graph *g, uint32_t node, unsigned edge,
                            LLVMValueRef cursor)
{
    struct asm_text t = {0};
    LLVMValueRef next;

    add_turn(g, edge, &t);
    add_mark(&t, g, "7b", node, ETCH_SOFT_MARK_FLUSH);
    next = etch_asm_build(e, &t, e->pointer, "=q,0,~{flags}", &cursor, 1);
    free(t.v);
    return next;
}

/* The cursor is an argument and a result of the assembly, so that it can stay in a register. */
static void check_slack(struct emitter *e, const struct flow_graph *g, const struct record *r, struct asm_text *t)
{
    LLVMValueRef place = LLVMBuildLoad2(e->builder, e->pointer, e->slot, ""), next;

    t->n = 0;
    etch_asm_add(t, "testl $$%u, ${0:k}\nje 9f\n8:\n.subsection 1\n9:\n", ETCH_SOFT_FULL);
    add_turn(g, r->edge, t);
    etch_asm_add(t, "jmp 8b\n.subsection 0\n");
    add_mark(t, g, "7b", r->node, ETCH_SOFT_MARK_FLUSH);
    next = etch_asm_build(e, t, e->pointer, "=q,0,~{flags}", &place, 1);
    if (!etch_emit_note(e, next))
        t->failed = true;
    else
        LLVMBuildStore(e->builder, next, e->slot);
}

static void record(struct emitter *e, const struct flow_graph *g, const struct record *r, struct asm_text *t)
{
    if (r->value)
        write_byte(e, r->value, t);
    if (r->checks_slack)
        check_slack(e, g, r, t);
}

/* Before `end`, which takes the edge. If that is a branch back to a loop whose rest can run, the check leads there. */
static void record_edge(struct emitter *e, struct flow_graph *g, struct record *r, const struct edge *edge,
                        LLVMValueRef end, struct asm_text *t)
{
    bool leaves = r->checks_slack && edge->checks_slack && etch_rest_is_at(g, edge) && LLVMIsABranchInst(end) &&
                  LLVMGetNumSuccessors(end) == 1;

    etch_emit_before(e, end);
    r->checks_slack = r->checks_slack && !leaves;
    record(e, g, r, t);
    if (leaves && !etch_rest_leave(e, g, end, edge->target, r->node, r->edge))
        t->failed = true;
}

/* ---- Where bytes are written ---- */

/* Several cases of one switch count as one way in. */
static bool has_one_way_in(LLVMBasicBlockRef block)
{
    LLVMValueRef from = NULL;

    for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);

        if (LLVMIsABlockAddress(user) || (LLVMIsATerminatorInst(user) && from && from != user))
            return false;
        from = LLVMIsATerminatorInst(user) ? user : from;
    }
    return true;
}

/* Builds the PHI again, because the API cannot change an incoming block. */
static void replace_incoming(struct emitter *e, struct flow_graph *g, LLVMValueRef phi, LLVMBasicBlockRef old,
                             LLVMBasicBlockRef new)
{
    LLVMValueRef copy;
    bool done = false;

    etch_emit_before(e, phi);
    copy = LLVMBuildPhi(e->builder, LLVMTypeOf(phi), "");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        LLVMBasicBlockRef block = LLVMGetIncomingBlock(phi, i);

        if (block == old && done)
            continue;
        done |= block == old;
        block = block == old ? new : block;
        LLVMAddIncoming(copy, &value, &block, 1);
    }
    LLVMReplaceAllUsesWith(phi, copy);
    LLVMInstructionEraseFromParent(phi);
    for (size_t i = 0; g && i < g->nodes.n; i++)
        if (g->nodes.v[i].count == phi)
            g->nodes.v[i].count = copy;
}

void etch_redirect_phis(struct emitter *e, struct flow_graph *g, LLVMBasicBlockRef block, LLVMBasicBlockRef from,
                        LLVMBasicBlockRef by)
{
    LLVMValueRef phi = LLVMGetFirstInstruction(block), next;

    for (; phi && LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        replace_incoming(e, g, phi, from, by);
    }
}

/* Puts a block between a terminator and a target that has other predecessors. */
static LLVMValueRef split(struct emitter *e, struct flow_graph *g, LLVMValueRef terminator, LLVMBasicBlockRef target)
{
    LLVMBasicBlockRef between = LLVMInsertBasicBlockInContext(e->context, target, "");

    etch_redirect_phis(e, g, target, LLVMGetInstructionParent(terminator), between);
    for (unsigned i = 0; i < LLVMGetNumSuccessors(terminator); i++)
        if (LLVMGetSuccessor(terminator, i) == target)
            LLVMSetSuccessor(terminator, i, between);
    etch_emit_at_end(e, between);
    return LLVMBuildBr(e->builder, target);
}

void etch_split_switches(struct emitter *e, LLVMValueRef function)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef t = LLVMGetBasicBlockTerminator(b);

        for (unsigned i = 0; t && LLVMIsASwitchInst(t) && i < LLVMGetNumSuccessors(t); i++)
            if (!has_one_way_in(LLVMGetSuccessor(t, i)))
                split(e, NULL, t, LLVMGetSuccessor(t, i));
    }
}

static bool is_branching(const struct node *n)
{
    return n->kind == ETCH_SOFT_FLOW && n->n_edges > 1;
}

/* Each edge of a branch has its own recording code: so the number is mostly a constant, and edges within a segment need
 * no byte. */
static void record_ways(struct emitter *e, struct flow_graph *g, uint32_t at, struct asm_text *t)
{
    const struct node *n = &g->nodes.v[at];

    for (uint32_t k = 0; k < n->n_edges; k++) {
        const struct edge *edge = &g->edges.v[n->first_edge + k];
        struct record r = {.node = at, .edge = k, .checks_slack = edge->checks_slack};
        const struct node *to;
        LLVMValueRef end;

        if (!edge->cut || (edge->silent && !edge->checks_slack))
            continue;
        to = &g->nodes.v[edge->target];
        end = has_one_way_in(to->block) ? to->begin : split(e, g, n->end, to->block);
        etch_emit_before(e, end);
        r.value = edge->silent ? NULL : etch_count_along(e, n, edge);
        record_edge(e, g, &r, edge, end, t);
    }
}

static void record_end(struct emitter *e, struct flow_graph *g, uint32_t at, struct asm_text *t)
{
    const struct node *n = &g->nodes.v[at];
    const struct edge *first = &g->edges.v[n->first_edge];
    struct record r = {.node = at, .checks_slack = n->checks_slack || first->checks_slack};

    if (is_branching(n) || !first->cut || LLVMIsAUnreachableInst(n->end))
        return;
    if (!first->silent)
        r.value = n->count;
    record_edge(e, g, &r, first, n->end, t);
}

static void report(struct emitter *e, const struct flow_graph *g, uint32_t at, struct asm_text *t)
{
    unsigned number = g->nodes.v[at].reports - 1;
    struct record r = {.node = at, .edge = AFTER_REPORT, .checks_slack = true};

    if (g->n_reports > ETCH_SOFT_PATHS)
        write_byte(e, etch_emit_byte(e, ETCH_SOFT_PATH + number / ETCH_SOFT_PATHS), t);
    r.value = etch_emit_byte(e, ETCH_SOFT_PATH + number % ETCH_SOFT_PATHS);
    record(e, g, &r, t);
}

static void land(struct emitter *e, const struct flow_graph *g, uint32_t at, LLVMValueRef saved)
{
    LLVMValueRef arguments[3] = {LLVMBuildLoad2(e->builder, e->pointer, saved, ""),
                                 LLVMBuildPtrToInt(e->builder, g->function, e->quad, ""),
                                 LLVMConstInt(e->word, at | (g->nodes.v[at].forks ? ETCH_SOFT_MAY_FORK : 0), false)};

    LLVMSetVolatile(arguments[0], true);
    LLVMBuildCall2(e->builder, e->land_type, e->land, arguments, 3, "");
}

/* The begin of a node: the report, the mark, the landing; in this order, and behind the record of a switch. */
static void begin_node(struct emitter *e, const struct flow_graph *g, uint32_t at, LLVMValueRef saved,
                       struct asm_text *t)
{
    const struct node *n = &g->nodes.v[at];

    if (n->unmarked)
        return;
    etch_emit_before(e, n->begin);
    if (n->reports)
        report(e, g, at, t);
    if (at != 0 || !g->lit) /* else it is before the code that looks at the entry */
        mark_node(e, g, at, t);
    if (n->lands && saved)
        land(e, g, at, saved);
}

/* ---- The table ---- */

static void add_bytes(struct asm_text *t, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the structures have no gaps */
        etch_asm_add(t, i % 32 ? ",%u" : i ? "\n.byte %u" : ".byte %u", ((const uint8_t *)bytes)[i]);
    etch_asm_add(t, "\n");
}

static void add_table(struct asm_text *t, const struct flow_graph *g, bool enters)
{
    etch_asm_add_section(t, ETCH_SOFT_MAP_SECTION, g->function);
    etch_asm_add(t, ".quad ");
    etch_asm_add_symbol(t, g->function);
    etch_asm_add(t, "\n.long %zu,%zu,%u\n", g->nodes.n, g->edges.n,
                 (enters ? (unsigned)ETCH_SOFT_ENTERS : 0) | (g->lit ? (unsigned)ETCH_SOFT_DIMS : 0) |
                     (g->rest ? (unsigned)ETCH_SOFT_RESTS : 0));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct node *n = &g->nodes.v[i];
        struct etch_soft_map_node node = {.kind = (uint8_t)n->kind,
                                          .flags = n->reports ? ETCH_SOFT_TELLS : 0,
                                          .paths = (uint16_t)(n->head ? n->paths : 0),
                                          .first_edge = n->first_edge,
                                          .tells = (uint16_t)(n->reports ? n->reports - 1 : 0)};

        add_bytes(t, &node, sizeof(node));
    }
    for (size_t i = 0; i < g->edges.n; i++) {
        const struct edge *d = &g->edges.v[i];
        struct etch_soft_map_edge edge = {
            .target = d->target,
            .value = (uint8_t)d->value,
            .flags = (uint8_t)((d->cut ? ETCH_SOFT_CUT : 0) | (d->silent ? ETCH_SOFT_SILENT : 0))};

        add_bytes(t, &edge, sizeof(edge));
    }
    etch_asm_add(t, ".popsection");
}

/* ---- Functions ---- */

static bool has_landings(const struct flow_graph *g)
{
    for (uint32_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.v[i].lands)
            return true;
    return false;
}

static void leave_before_returns(struct emitter *e, const struct flow_graph *g, LLVMValueRef act)
{
    for (uint32_t i = 0; i < g->nodes.n; i++)
        if (LLVMIsAReturnInst(g->nodes.v[i].end)) {
            etch_emit_before(e, g->nodes.v[i].end);
            LLVMBuildCall2(e->builder, e->leave_type, e->leave, &act, 1, "");
        }
}

/* Builds the table, the report of the entry, and what landings need before the function's own code. Returns the saved
 * top for the landings; NULL: there are none. */
static LLVMValueRef begin_function(struct emitter *e, struct flow_graph *g, bool enters, struct asm_text *t,
                                   LLVMValueRef *act)
{
    LLVMValueRef saved = NULL, top;

    etch_emit_before(e, g->nodes.v[0].begin);
    t->n = 0;
    add_table(t, g, enters);
    etch_asm_build(e, t, e->void_type, "", NULL, 0);
    if (enters)
        *act = etch_emit_own_entry(e, g->function);
    if (has_landings(g)) {
        saved = LLVMBuildAlloca(e->builder, e->pointer, "");
        top = LLVMBuildLoad2(e->builder, e->pointer, e->top, "");
        LLVMSetVolatile(LLVMBuildStore(e->builder, top, saved), true);
    }
    return saved;
}

/* Something elsewhere that belongs to the function. */
static void mark_other(struct emitter *e, const struct flow_graph *g, LLVMValueRef other, enum etch_soft_mark_kind kind,
                       struct asm_text *t)
{
    if (!other)
        return;
    etch_emit_before(e, g->nodes.v[0].begin);
    t->n = 0;
    etch_asm_add_section(t, ETCH_SOFT_MARK_SECTION, g->function);
    etch_asm_add(t, ".quad ");
    etch_asm_add_symbol(t, other);
    etch_asm_add(t, "\n.quad ");
    etch_asm_add_symbol(t, g->function);
    etch_asm_add(t, "\n.long 0,%u\n.popsection", (unsigned)kind);
    etch_asm_build(e, t, e->void_type, "", NULL, 0);
}

bool etch_emit_function(struct emitter *e, struct flow_graph *g, bool enters, LLVMValueRef plain)
{
    struct asm_text t = {0};
    LLVMValueRef saved, act = NULL;
    bool whole;

    g->nodes.v[0].begin = LLVMGetNextInstruction(e->opened);
    whole = etch_count_paths(e, g);
    if (whole) {
        saved = begin_function(e, g, enters, &t, &act);
        for (uint32_t i = 0; i < g->n_order; i++) /* before the marks of where it leads */
            if (is_branching(&g->nodes.v[g->order[i]]))
                record_ways(e, g, g->order[i], &t);
        for (uint32_t i = 0; i < g->n_order; i++)
            begin_node(e, g, g->order[i], saved, &t);
        for (uint32_t i = 0; i < g->n_order; i++)
            record_end(e, g, g->order[i], &t);
        if (act)
            leave_before_returns(e, g, act);
        mark_other(e, g, plain, ETCH_SOFT_MARK_PLAIN, &t);
        mark_other(e, g, g->lit, ETCH_SOFT_MARK_LIT, &t);
        mark_other(e, g, g->gone ? g->rest : NULL, ETCH_SOFT_MARK_PLAIN, &t);
        etch_rest_forget(g);
    }
    whole = whole && !t.failed && etch_cursor_close(e, g->function);
    whole = whole && etch_emit_gone(e, g) && (!g->lit || etch_emit_dark(e, g, plain));
    free(t.v);
    return whole;
}
