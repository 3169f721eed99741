/* SPDX-License-Identifier: MIT */
/* The recording code itself, as inline assembly: its instructions are what the decoder and a crash see, so they are
 * chosen here rather than by the optimiser. Marks and tables go into sections that are not loaded. */
#include "slicer/instrument/model.h"

#include <llvm-c/Comdat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AFTER_TELLING 0xffu /* as an edge: at the begin of the node */

/* ---- Text ---- */

struct text {
    char *v;
    size_t n, capacity;
    bool failed;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *format, ...)
{
    for (;;) {
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(t->v ? t->v + t->n : NULL, t->capacity - t->n, format, arguments);
        va_end(arguments);
        if (n < 0 || (t->v && (size_t)n < t->capacity - t->n)) {
            t->n += n > 0 ? (size_t)n : 0;
            return;
        }
        if (!etch_array_grow((void **)&t->v, &t->capacity, 1, t->n + (size_t)n + 1)) {
            t->failed = true;
            return;
        }
    }
}

/* In assembly within LLVM's template language, where a dollar is doubled. */
static void say_symbol(struct text *t, LLVMValueRef function)
{
    size_t n;
    const char *name = LLVMGetValueName2(function, &n);

    say(t, "\"");
    for (size_t i = name[0] == 1; i < n; i++)
        say(t, name[i] == '$' ? "$$" : "%c", name[i]);
    say(t, "\"");
}

/* Kept or dropped by the linker together with the function. The empty text makes the assembler put an entry of the line
 * table that is pending into the code, where it belongs, rather than into our section. */
static void say_section(struct text *t, const char *section, LLVMValueRef function)
{
    LLVMComdatRef comdat = LLVMGetComdat(function);

    say(t, ".ascii \"\"\n.pushsection %s,\"%s\",@progbits,", section, comdat ? "Go" : "o");
    say_symbol(t, function);
    if (comdat) {
        say(t, ",");
        say_symbol(t, function); /* our comdats are named after their function */
        say(t, ",comdat");
    }
    say(t, "\n");
}

static void say_mark(struct text *t, const struct flow_graph *g, const char *label, uint32_t node,
                     enum etch_soft_mark_kind kind)
{
    say_section(t, ETCH_SOFT_MARK_SECTION, g->function);
    say(t, ".quad %s\n.quad ", label);
    say_symbol(t, g->function);
    say(t, "\n.long %u,%u\n.popsection\n", node, (unsigned)kind);
}

/* ---- Inserting ---- */

static LLVMValueRef build_asm(struct emitter *e, struct text *t, LLVMTypeRef result, const char *constraints,
                              LLVMValueRef *arguments, unsigned n)
{
    LLVMTypeRef types[3], type;
    LLVMValueRef code;

    if (t->failed)
        return NULL;
    for (unsigned i = 0; i < n; i++)
        types[i] = LLVMTypeOf(arguments[i]);
    type = LLVMFunctionType(result, types, n, false);
    code = LLVMGetInlineAsm(type, t->v, t->n, constraints, strlen(constraints), true, false, LLVMInlineAsmDialectATT,
                            false);
    return LLVMBuildCall2(e->builder, type, code, arguments, n, "");
}

static void mark_node(struct emitter *e, const struct flow_graph *g, uint32_t node, struct text *t)
{
    t->n = 0;
    say_mark(t, g, "0f", node, ETCH_SOFT_MARK_NODE);
    /* Behind a call that does not return the function's code may end, and the mark must not be in the next. */
    say(t, LLVMIsAUnreachableInst(g->nodes.v[node].begin) ? "0:\nud2" : "0:");
    build_asm(e, t, e->void_type, "", NULL, 0);
}

/* What is written, if anything, and which edge the code goes along then. */
struct record {
    uint32_t node;
    LLVMValueRef value; /* NULL: nothing */
    unsigned edge;
    bool asks; /* whether the chunk has room */
};

static bool note_byte(struct emitter *e, LLVMValueRef code)
{
    return code && etch_pointers_set(&e->bytes, code, 1);
}

static void write_byte(struct emitter *e, LLVMValueRef value, struct text *t)
{
    bool constant = LLVMIsAConstantInt(value) != NULL;
    LLVMValueRef arguments[2] = {LLVMBuildLoad2(e->builder, e->pointer, e->slot, ""), value}, next,
                 one = LLVMConstInt(e->quad, 1, false);

    t->n = 0;
    if (constant)
        say(t, "movb $$%u, ($0)", (unsigned)(LLVMConstIntGetZExtValue(value) & 0xff));
    else
        say(t, "movb $1, ($0)");
    if (!note_byte(e, build_asm(e, t, e->void_type, constant ? "r" : "r,q", arguments, constant ? 1 : 2)))
        t->failed = true;
    next = LLVMBuildInBoundsGEP2(e->builder, e->byte, arguments[0], &one, 1, "");
    LLVMBuildStore(e->builder, next, e->slot);
}

/* The place in the ring goes in and comes out, so that it can stay in a register. */
static void ask(struct emitter *e, const struct flow_graph *g, const struct record *r, struct text *t)
{
    LLVMValueRef place = LLVMBuildLoad2(e->builder, e->pointer, e->slot, ""), next;

    t->n = 0;
    say(t, "testl $$%u, ${0:k}\nje 9f\n8:\n.subsection 1\n9:\n", ETCH_SOFT_FULL);
    say(t, "pushq $$%u\npushq $0\ncall etch_soft_turn3\n7:\npopq $0\nleaq 8(%%rsp), %%rsp\njmp 8b\n.subsection 0\n",
        r->edge);
    say_mark(t, g, "7b", r->node, ETCH_SOFT_MARK_FLUSH);
    next = build_asm(e, t, e->pointer, "=q,0,~{flags}", &place, 1);
    if (!note_byte(e, next))
        t->failed = true;
    else
        LLVMBuildStore(e->builder, next, e->slot);
}

static void record(struct emitter *e, const struct flow_graph *g, const struct record *r, struct text *t)
{
    if (r->value)
        write_byte(e, r->value, t);
    if (r->asks)
        ask(e, g, r, t);
}

/* ---- The count ---- */

static LLVMValueRef byte_of(const struct emitter *e, unsigned value)
{
    return LLVMConstInt(e->byte, value, false);
}

/* What an edge brings to where it leads; built where the builder stands. */
static LLVMValueRef along(struct emitter *e, const struct node *from, const struct edge *edge)
{
    if (!edge->value)
        return from->count;
    return LLVMBuildAdd(e->builder, from->count, byte_of(e, edge->value), "");
}

/* Our code has no place in the source. */
static void before(const struct emitter *e, LLVMValueRef instruction)
{
    LLVMPositionBuilderBeforeInstrAndDbgRecords(e->builder, instruction);
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
}

struct arrival {
    uint32_t from;
    const struct edge *edge;
};

typedef ETCH_ARRAY(struct arrival) arrivals;

/* Several ways lead here: a PHI of what they bring, unless all bring the same. A cut edge brings a new count. */
static void join(struct emitter *e, struct flow_graph *g, struct node *n, const arrivals *from)
{
    LLVMValueRef phi, value;

    before(e, LLVMGetFirstInstruction(n->block));
    phi = LLVMBuildPhi(e->builder, e->byte, "");
    for (size_t i = 0; i < from->n; i++) {
        struct node *p = &g->nodes.v[from->v[i].from];

        before(e, p->end);
        value = from->v[i].edge->cut ? byte_of(e, ETCH_SOFT_PATH) : along(e, p, from->v[i].edge);
        LLVMAddIncoming(phi, &value, &p->block, 1);
    }
    n->count = phi;
}

/* A PHI wants one value for each edge, and a switch may have several to the same place. */
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

/* All edges by where they lead. */
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
    bool carried = false;

    n->count = byte_of(e, ETCH_SOFT_PATH);
    for (size_t i = 0; i < in->n; i++)
        carried |= !in->v[i].edge->cut && g->nodes.v[in->v[i].from].live;
    if (!n->live || !carried)
        return;
    if (in->n > 1) {
        join(e, g, n, in);
        repeat_incoming(n, n->count);
    } else {
        before(e, n->begin);
        n->count = along(e, &g->nodes.v[in->v[0].from], in->v[0].edge);
    }
}

/* In the graph's order, so that what comes before is there. */
static bool count_paths(struct emitter *e, struct flow_graph *g)
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

/* ---- Where bytes are written ---- */

/* Several cases of a switch are one. */
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

/* A PHI's incoming block cannot be changed: it is built anew. */
static void replace_incoming(struct emitter *e, struct flow_graph *g, LLVMValueRef phi, LLVMBasicBlockRef old,
                             LLVMBasicBlockRef new)
{
    LLVMValueRef copy;
    bool done = false;

    before(e, phi);
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

/* A block on the way from a terminator to a block that others lead to as well. */
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

/* Where a branch has several ways, each is recorded on itself: so the number is a constant mostly, and ways that go on
 * in the segment need no byte. */
static void record_ways(struct emitter *e, struct flow_graph *g, uint32_t at, struct text *t)
{
    const struct node *n = &g->nodes.v[at];

    for (uint32_t k = 0; k < n->n_edges; k++) {
        const struct edge *edge = &g->edges.v[n->first_edge + k];
        struct record r = {.node = at, .edge = k, .asks = edge->asks};
        const struct node *to;

        if (!edge->cut || edge->silent)
            continue;
        to = &g->nodes.v[edge->target];
        before(e, has_one_way_in(to->block) ? to->begin : split(e, g, n->end, to->block));
        r.value = along(e, n, edge);
        record(e, g, &r, t);
    }
}

static void record_end(struct emitter *e, struct flow_graph *g, uint32_t at, struct text *t)
{
    const struct node *n = &g->nodes.v[at];
    const struct edge *first = &g->edges.v[n->first_edge];
    struct record r = {.node = at, .asks = n->asks || first->asks};

    if (is_branching(n) || !first->cut || LLVMIsAUnreachableInst(n->end))
        return;
    if (!first->silent)
        r.value = n->count;
    before(e, n->end);
    record(e, g, &r, t);
}

static void tell(struct emitter *e, const struct flow_graph *g, uint32_t at, struct text *t)
{
    unsigned number = g->nodes.v[at].tells - 1;
    struct record r = {.node = at, .edge = AFTER_TELLING, .asks = true};

    if (g->n_tells > ETCH_SOFT_PATHS)
        write_byte(e, byte_of(e, ETCH_SOFT_PATH + number / ETCH_SOFT_PATHS), t);
    r.value = byte_of(e, ETCH_SOFT_PATH + number % ETCH_SOFT_PATHS);
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

/* The begin of a node: what tells, the mark, what lands; in this order, and behind what a switch records. */
static void begin_node(struct emitter *e, const struct flow_graph *g, uint32_t at, LLVMValueRef saved, struct text *t)
{
    const struct node *n = &g->nodes.v[at];

    if (n->unmarked)
        return;
    before(e, n->begin);
    if (n->tells)
        tell(e, g, at, t);
    mark_node(e, g, at, t);
    if (n->lands && saved)
        land(e, g, at, saved);
}

/* ---- The table ---- */

static void say_bytes(struct text *t, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the structures have no gaps */
        say(t, i % 32 ? ",%u" : i ? "\n.byte %u" : ".byte %u", ((const uint8_t *)bytes)[i]);
    say(t, "\n");
}

static void say_table(struct text *t, const struct flow_graph *g, bool enters)
{
    say_section(t, ETCH_SOFT_MAP_SECTION, g->function);
    say(t, ".quad ");
    say_symbol(t, g->function);
    say(t, "\n.long %zu,%zu,%u\n", g->nodes.n, g->edges.n, enters ? (unsigned)ETCH_SOFT_ENTERS : 0);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct node *n = &g->nodes.v[i];
        struct etch_soft_map_node node = {.kind = (uint8_t)n->kind,
                                          .flags = n->tells ? ETCH_SOFT_TELLS : 0,
                                          .paths = (uint16_t)(n->head ? n->paths : 0),
                                          .first_edge = n->first_edge,
                                          .tells = (uint16_t)(n->tells ? n->tells - 1 : 0)};

        say_bytes(t, &node, sizeof(node));
    }
    for (size_t i = 0; i < g->edges.n; i++) {
        const struct edge *d = &g->edges.v[i];
        struct etch_soft_map_edge edge = {
            .target = d->target,
            .value = (uint8_t)d->value,
            .flags = (uint8_t)((d->cut ? ETCH_SOFT_CUT : 0) | (d->silent ? ETCH_SOFT_SILENT : 0))};

        say_bytes(t, &edge, sizeof(edge));
    }
    say(t, ".popsection");
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
            before(e, g->nodes.v[i].end);
            LLVMBuildCall2(e->builder, e->leave_type, e->leave, &act, 1, "");
        }
}

/* Before the entry's own code: the table, the entry from outside, what landings need. Returns what they need. */
static LLVMValueRef begin_function(struct emitter *e, struct flow_graph *g, bool enters, struct text *t,
                                   LLVMValueRef *act)
{
    LLVMValueRef saved = NULL, top;

    before(e, g->nodes.v[0].begin);
    t->n = 0;
    say_table(t, g, enters);
    build_asm(e, t, e->void_type, "", NULL, 0);
    if (enters)
        *act = etch_emit_own_entry(e, g->function);
    if (has_landings(g)) {
        saved = LLVMBuildAlloca(e->builder, e->pointer, "");
        top = LLVMBuildLoad2(e->builder, e->pointer, e->top, "");
        LLVMSetVolatile(LLVMBuildStore(e->builder, top, saved), true);
    }
    return saved;
}

bool etch_emit_function(struct emitter *e, struct flow_graph *g, bool enters)
{
    struct text t = {0};
    LLVMValueRef saved, act = NULL;
    bool whole;

    g->nodes.v[0].begin = LLVMGetNextInstruction(e->opened);
    whole = count_paths(e, g);
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
    }
    whole = whole && !t.failed && etch_cursor_close(e, g->function);
    free(t.v);
    return whole;
}

/* ---- Calls through pointers ----
 * Whoever calls through a pointer comes to the entry, and to tell the runtime of that is dear: compiled code need not,
 * as its frame can be followed. It looks whether what it calls begins as such an entry does, which is a no-operation
 * that nothing else has, and if so goes to PASS bytes behind. There the entry itself records which function this is.
 * The look is at the 16 bytes of memory in which the pointer points, so never at a page other than the one it would
 * run. */

#define PASS_NOP "0x0f,0x1f,0x84,0x00,0x65,0xd3,0x1c,0xb7"

/* Only where the compiler puts nothing before our first instruction, and registers are those of C. */
bool etch_can_pass(const struct emitter *e, LLVMValueRef function)
{
    return LLVMGetFunctionCallConv(function) == LLVMCCallConv &&
           !LLVMGetModuleFlag(e->module, "cf-protection-branch", strlen("cf-protection-branch")) &&
           !LLVMGetModuleFlag(e->module, "kcfi", 4);
}

/* The runtime says before anything runs whether this process records. Nothing but flags changes here. */
static void say_gate(struct text *t, LLVMValueRef teller, LLVMValueRef plain)
{
    if (plain) {
        say(t, "cmpb $$0, etch_soft_on(%%rip)\nje ");
        say_symbol(t, plain);
        say(t, "\n");
    }
    say(t, "jmp ");
    say_symbol(t, teller);
    say(t, "\n");
}

/* The byte before the call found that the chunk has room; r11 is free at a C function's begin. */
static void say_pass(struct text *t, LLVMValueRef body)
{
    say(t, ".balign %u\nleaq ", PASS);
    say_symbol(t, body);
    say(t, "(%%rip), %%r11\nmovl %%r11d, 1(%%r10)\nmovb $$%u, (%%r10)\naddq $$%u, %%r10\njmp ",
        (unsigned)ETCH_SOFT_PASSED, ETCH_SOFT_PASSED_SIZE);
    say_symbol(t, body);
}

static void set_flag(const struct emitter *e, LLVMValueRef function, const char *name)
{
    LLVMAddAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateEnumAttribute(e->context, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0));
}

LLVMValueRef etch_emit_gate(struct emitter *e, LLVMValueRef body, LLVMValueRef like, LLVMValueRef teller,
                            LLVMValueRef plain, const char *name)
{
    LLVMValueRef gate = LLVMAddFunction(e->module, name, LLVMGlobalGetValueType(like));
    LLVMAttributeIndex self = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    bool passable = etch_carries(body) && etch_can_pass(e, body);
    struct text t = {0};

    etch_copy_shape(like, gate);
    LLVMRemoveStringAttributeAtIndex(gate, self, "frame-pointer", strlen("frame-pointer"));
    set_flag(e, gate, "naked");
    set_flag(e, gate, "noinline");
    if (LLVMGetSection(body) && LLVMGetSection(body)[0])
        LLVMSetSection(gate, LLVMGetSection(body));
    etch_emit_at_end(e, LLVMAppendBasicBlockInContext(e->context, gate, ""));
    if (passable) {
        LLVMSetAlignment(gate, PASS);
        say(&t, ".byte " PASS_NOP "\n");
    }
    say_gate(&t, teller, plain);
    if (passable)
        say_pass(&t, body);
    build_asm(e, &t, e->void_type, "", NULL, 0);
    LLVMBuildUnreachable(e->builder);
    free(t.v);
    return t.failed ? NULL : gate;
}

bool etch_emit_passing(struct emitter *e, LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call), at, begin, is, distance;

    if (LLVMIsAConstant(callee) || LLVMGetInstructionCallConv(call) != LLVMCCallConv ||
        !etch_can_pass_by(LLVMGetCalledFunctionType(call)) || etch_call_returns_twice(call))
        return true;
    before(e, call);
    at = LLVMBuildPtrToInt(e->builder, callee, e->quad, "");
    begin = LLVMBuildAnd(e->builder, at, LLVMConstInt(e->quad, ~(uint64_t)15, false), "");
    begin = LLVMBuildLoad2(e->builder, e->quad, LLVMBuildIntToPtr(e->builder, begin, e->pointer, ""), "");
    LLVMSetVolatile(begin, true);
    is = LLVMBuildICmp(e->builder, LLVMIntEQ, begin, LLVMConstInt(e->quad, PASS_WORD, false), "");
    if (etch_can_stay_tail(e, call)) {
        at = LLVMBuildAdd(e->builder, at, LLVMConstInt(e->quad, PASS, false), "");
        return etch_carry_tail(e, call, LLVMBuildIntToPtr(e->builder, at, e->pointer, ""), is);
    }
    distance = LLVMBuildSelect(e->builder, is, LLVMConstInt(e->quad, PASS, false), LLVMConstInt(e->quad, 0, false), "");
    at = LLVMBuildIntToPtr(e->builder, LLVMBuildAdd(e->builder, at, distance, ""), e->pointer, "");
    return etch_carry_call(e, call, at, distance) != NULL;
}

/* ---- The module ---- */

static LLVMValueRef declare(struct emitter *e, const char *name, LLVMTypeRef type)
{
    LLVMValueRef function = LLVMGetNamedFunction(e->module, name);

    if (!function) {
        function = LLVMAddFunction(e->module, name, type);
        LLVMSetVisibility(function, LLVMHiddenVisibility);
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(e->context, LLVMGetEnumAttributeKindForName("nounwind", 8), 0));
    }
    return function;
}

void etch_emitter_open(struct emitter *e, LLVMModuleRef module)
{
    LLVMTypeRef p, q, types[4];

    e->module = module;
    e->context = LLVMGetModuleContext(module);
    e->builder = LLVMCreateBuilderInContext(e->context);
    e->void_type = LLVMVoidTypeInContext(e->context);
    e->byte = LLVMInt8TypeInContext(e->context);
    e->word = LLVMInt32TypeInContext(e->context);
    e->quad = q = LLVMInt64TypeInContext(e->context);
    e->pointer = p = LLVMPointerTypeInContext(e->context, 0);
    e->shared = LLVMGetModuleFlag(module, "PIC Level", 9) && !LLVMGetModuleFlag(module, "PIE Level", 9);
    e->enter_type = LLVMFunctionType(p, (types[0] = p, types[1] = q, types[2] = q, types[3] = p, types), 4, 0);
    e->enter = declare(e, "etch_soft_enter3", e->enter_type);
    e->leave_type = LLVMFunctionType(e->void_type, (types[0] = p, types), 1, 0);
    e->leave = declare(e, "etch_soft_leave", e->leave_type);
    e->unwind = declare(e, "etch_soft_unwind", e->leave_type);
    e->land_type = LLVMFunctionType(e->void_type, (types[0] = p, types[1] = q, types[2] = e->word, types), 3, 0);
    e->land = declare(e, "etch_soft_land", e->land_type);
    e->stamp_type = LLVMFunctionType(e->void_type, NULL, 0, 0);
    e->stamp = declare(e, "etch_soft_stamp", e->stamp_type);
    e->top = LLVMAddGlobal(module, p, "etch_soft_top");
    LLVMSetThreadLocalMode(e->top, e->shared ? LLVMInitialExecTLSModel : LLVMLocalExecTLSModel);
    e->cursor = LLVMAddGlobal(module, p, "etch_soft_cur");
    LLVMSetThreadLocalMode(e->cursor, e->shared ? LLVMInitialExecTLSModel : LLVMLocalExecTLSModel);
}

void etch_emitter_close(struct emitter *e)
{
    LLVMDisposeBuilder(e->builder);
    etch_pointers_release(&e->bytes);
    etch_pointers_release(&e->carrying);
    etch_array_free(&e->is);
}
