/* SPDX-License-Identifier: MIT */
/* Functions that can go dark: if recording them costs more than the budget, the runtime lets their plain copies run.
 *
 * The recorded code of such a function first looks at an entry that the runtime changes. If the entry is not lit, the
 * code records which function it is, and from where it was called. Then it calls the plain copy, which calls plain
 * copies in turn. All that is called meanwhile through pointers is dark, too (gate.c). For the replay this is a call of
 * code without a recorder, with only the return behind it. */
#include "base/function_name.h"
#include "slicer/instrument/model.h"

#include <llvm-c/Comdat.h>
#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool etch_may_go_dark(LLVMValueRef function)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);

    if (LLVMGetNextBasicBlock(block))
        return true;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
        if (LLVMIsACallInst(i) && !LLVMIsAIntrinsicInst(i))
            return true;
    return false;
}

/* The number of a function's name, as people write it. */
static uint32_t number_of(const char *linkage)
{
    char *whole = etch_function_name(linkage, NULL, 0), brief[256];
    const char *name = whole ? etch_function_short(whole, brief, sizeof(brief)) : linkage;
    uint32_t number = etch_soft_name(name, strlen(name));

    free(whole);
    return number;
}

/* Files that share the function share its entry, too: any of them may have the code that runs. */
LLVMValueRef etch_emit_lit(struct emitter *e, LLVMValueRef function, const char *name)
{
    LLVMTypeRef half = LLVMInt16TypeInContext(e->context);
    LLVMValueRef fields[4] = {LLVMConstNull(e->byte), LLVMConstNull(e->byte), LLVMConstNull(half),
                              LLVMConstInt(e->word, number_of(name), false)};
    LLVMValueRef value = LLVMConstStructInContext(e->context, fields, 4, false), lit;
    char *own = NULL;

    if (asprintf(&own, "%s" ETCH_SOFT_LIT_SUFFIX, name) < 0)
        return NULL;
    lit = LLVMAddGlobal(e->module, LLVMTypeOf(value), own);
    LLVMSetInitializer(lit, value);
    LLVMSetSection(lit, ETCH_SOFT_LIT_SECTION);
    LLVMSetAlignment(lit, sizeof(struct etch_soft_lit));
    LLVMSetLinkage(lit, LLVMInternalLinkage);
    if (LLVMGetComdat(function)) {
        LLVMSetLinkage(lit, LLVMExternalLinkage);
        LLVMSetVisibility(lit, LLVMHiddenVisibility);
        LLVMSetComdat(lit, LLVMGetOrInsertComdat(e->module, own));
    }
    free(own);
    return lit;
}

static bool add_node(struct flow_graph *g, enum etch_soft_node_kind kind, uint32_t target)
{
    struct node node = {.kind = kind, .first_edge = (uint32_t)g->edges.n, .n_edges = 1, .unwind = NO_NODE};
    struct edge edge = {.target = target, .cut = true, .silent = true};

    return etch_array_push(&g->nodes, node) && etch_array_push(&g->edges, edge);
}

bool etch_dark_nodes(struct flow_graph *g)
{
    uint32_t after = (uint32_t)g->nodes.n + 1;

    return add_node(g, ETCH_SOFT_CALL, after) && add_node(g, ETCH_SOFT_RETURN, NO_NODE);
}

/* ---- Code ---- */

/* Variables must be in the first block. */
static void move_variables(struct emitter *e, LLVMBasicBlockRef from, LLVMBasicBlockRef to)
{
    LLVMValueRef next;

    for (LLVMValueRef i = LLVMGetFirstInstruction(from); i; i = next) {
        next = LLVMGetNextInstruction(i);
        if (!LLVMIsAAllocaInst(i) || !LLVMIsAConstantInt(LLVMGetOperand(i, 0)))
            continue;
        LLVMInstructionRemoveFromParent(i);
        LLVMPositionBuilderAtEnd(e->builder, to);
        LLVMInsertIntoBuilder(e->builder, i);
    }
}

static LLVMValueRef behind(struct emitter *e, LLVMValueRef pointer, unsigned bytes)
{
    LLVMValueRef distance = LLVMConstInt(e->quad, bytes, false);

    return LLVMBuildInBoundsGEP2(e->builder, e->byte, pointer, &distance, 1, "");
}

/* In the order that is written here. */
static void set(struct emitter *e, LLVMValueRef value, LLVMValueRef to)
{
    LLVMValueRef store = LLVMBuildStore(e->builder, value, to);

    LLVMSetVolatile(store, true);
    LLVMSetAlignment(store, 1);
}

static void set_half(struct emitter *e, LLVMValueRef address, LLVMValueRef to)
{
    set(e, LLVMBuildTrunc(e->builder, LLVMBuildPtrToInt(e->builder, address, e->quad, ""), e->word, ""), to);
}

static LLVMValueRef address_of(struct emitter *e, const char *what, bool frame)
{
    unsigned id = LLVMLookupIntrinsicID(what, strlen(what));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, &e->pointer, frame), zero;

    zero = LLVMConstNull(e->word);
    return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(function), function, &zero, 1, "");
}

static void write_record(struct emitter *e, LLVMValueRef body, LLVMValueRef cursor, enum etch_soft_byte record)
{
    set_half(e, body, behind(e, cursor, 1));
    set_half(e, address_of(e, "llvm.returnaddress", false), behind(e, cursor, 5));
    set(e, etch_emit_byte(e, record), cursor);
    set(e, behind(e, cursor, ETCH_SOFT_DARK_SIZE), e->cursor);
}

/* LLVM wants a place in the source for a call of a function that has debug information. */
static void place_call(const struct emitter *e, LLVMValueRef body, LLVMValueRef call)
{
    LLVMMetadataRef about = LLVMGetSubprogram(body);

    if (about)
        LLVMInstructionSetDebugLoc(
            call, LLVMDIBuilderCreateDebugLocation(e->context, LLVMDISubprogramGetLine(about), 0, about, NULL));
}

/* With the arguments of the body, or with the record that the rest takes. */
static LLVMValueRef call_plain(struct emitter *e, LLVMValueRef body, LLVMValueRef plain, LLVMValueRef record)
{
    unsigned n = LLVMCountParams(plain);
    LLVMValueRef *arguments = calloc(LLVMCountParams(body) + 1, sizeof(*arguments)), call;

    if (!arguments)
        return NULL;
    LLVMGetParams(body, arguments);
    if (record)
        arguments[0] = record;
    call = LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(plain), plain, arguments, n, "");
    free(arguments);
    place_call(e, body, call);
    LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(plain));
    etch_copy_call_shape(plain, call);
    return call;
}

/* What runs in place of the recorded code. */
struct dark_call {
    LLVMValueRef plain;
    LLVMValueRef record; /* NULL: it takes the arguments */
    LLVMValueRef cursor;
    uint32_t node;
    enum etch_soft_byte byte;
};

/* The plain copy may have led to recorded code: the cursor is in the variable. */
static bool run_plain(struct emitter *e, const struct flow_graph *g, const struct dark_call *d)
{
    LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(g->function));
    LLVMValueRef call, cursor, before;

    if (!etch_emit_mark(e, g, d->node))
        return false;
    write_record(e, g->function, d->cursor, d->byte);
    before = LLVMBuildLoad2(e->builder, e->pointer, e->shade, "");
    set(e, address_of(e, "llvm.frameaddress", true), e->shade);
    call = call_plain(e, g->function, d->plain, d->record);
    if (!call)
        return false;
    set(e, before, e->shade);
    cursor = LLVMBuildLoad2(e->builder, e->pointer, e->cursor, "");
    LLVMSetVolatile(cursor, true);
    if (LLVMTypeOf(call) != e->void_type) {
        call = LLVMBuildInsertValue(e->builder, LLVMGetPoison(type), call, 1, "");
        cursor = LLVMBuildInsertValue(e->builder, call, cursor, 0, "");
    }
    LLVMBuildRet(e->builder, cursor);
    return true;
}

bool etch_emit_dark(struct emitter *e, const struct flow_graph *g, LLVMValueRef plain)
{
    LLVMBasicBlockRef body = LLVMGetEntryBasicBlock(g->function);
    LLVMBasicBlockRef gate = LLVMInsertBasicBlockInContext(e->context, body, "");
    LLVMBasicBlockRef dark = LLVMAppendBasicBlockInContext(e->context, g->function, "");
    struct dark_call call = {.plain = plain,
                             .cursor = LLVMGetLastParam(g->function),
                             .node = (uint32_t)g->nodes.n - 2,
                             .byte = ETCH_SOFT_DARK};
    LLVMValueRef lit;

    move_variables(e, body, gate);
    etch_emit_at_end(e, gate);
    if (!etch_emit_mark(e, g, 0))
        return false;
    lit = LLVMBuildLoad2(e->builder, e->byte, g->lit, "");
    LLVMSetVolatile(lit, true);
    etch_emit_rarely(e, LLVMBuildICmp(e->builder, LLVMIntEQ, lit, LLVMConstNull(e->byte), ""), dark, body);
    etch_emit_at_end(e, dark);
    return run_plain(e, g, &call);
}

bool etch_emit_gone(struct emitter *e, const struct flow_graph *g)
{
    struct dark_call call = {
        .plain = g->rest, .record = g->record, .node = (uint32_t)g->nodes.n - 4, .byte = ETCH_SOFT_GONE_DARK};

    if (!g->gone)
        return true;
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(g->gone));
    etch_emit_at_end(e, g->gone);
    call.cursor = LLVMBuildLoad2(e->builder, e->pointer, e->slot, "");
    return run_plain(e, g, &call);
}
