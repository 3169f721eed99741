/* SPDX-License-Identifier: MIT */
/* The code of a recorded function that leaves a loop for the function's rest: see rest.h. All of it is out of the way,
 * behind the check of the slack that a back edge makes anyway. */
#include "slicer/instrument/rest.h"

#include <llvm-c/Target.h>

static bool is_first_of_block(const struct flow_graph *g, uint32_t node)
{
    return etch_pointers_get(&g->first_of, g->nodes.v[node].block) == node;
}

void etch_rest_find(struct flow_graph *g, LLVMValueRef rest)
{
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        g->nodes.v[i].leave = NULL;
        g->nodes.v[i].point = is_first_of_block(g, i) ? etch_rest_point(g->nodes.v[i].block) : NULL;
        if (g->nodes.v[i].point && rest)
            g->rest = rest;
    }
}

void etch_rest_forget(const struct flow_graph *g)
{
    for (uint32_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.v[i].point)
            LLVMInstructionEraseFromParent(g->nodes.v[i].point);
}

static unsigned n_values(const struct node *n)
{
    return n->point ? LLVMGetNumArgOperands(n->point) / 2 : 0;
}

static LLVMValueRef value_of(const struct node *n, unsigned k)
{
    return LLVMGetOperand(n->point, 2 * k + 2);
}

static uint64_t offset_of(const struct node *n, unsigned k)
{
    return LLVMConstIntGetZExtValue(LLVMGetOperand(n->point, 2 * k + 1));
}

/* The record is as large as the largest of the function's heads needs. */
static void make_room(struct emitter *e, struct flow_graph *g)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(e->module);
    uint64_t most = 16;

    for (uint32_t i = 0; i < g->nodes.n; i++)
        for (unsigned k = 0; k < n_values(&g->nodes.v[i]); k++) {
            uint64_t size = LLVMABISizeOfType(layout, LLVMTypeOf(value_of(&g->nodes.v[i], k)));

            size += offset_of(&g->nodes.v[i], k);
            most = size > most ? size : most;
        }
    etch_emit_before(e, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(g->function)));
    g->record = LLVMBuildAlloca(e->builder, LLVMArrayType2(e->byte, most), "");
    LLVMSetAlignment(g->record, 16);
    g->gone = LLVMAppendBasicBlockInContext(e->context, g->function, "");
    etch_emit_at_end(e, g->gone);
    LLVMBuildUnreachable(e->builder); /* for now: etch_emit_gone() */
}

static bool is_phi_of(LLVMValueRef value, const struct node *n)
{
    return LLVMIsAPHINode(value) && LLVMGetInstructionParent(value) == n->block;
}

static void store_value(struct emitter *e, const struct flow_graph *g, LLVMValueRef value, uint64_t at)
{
    LLVMValueRef offset = LLVMConstInt(e->quad, at, false);

    LLVMBuildStore(e->builder, value, LLVMBuildInBoundsGEP2(e->builder, e->byte, g->record, &offset, 1, ""));
}

/* Addresses of variables are the same for all heads. */
static void store_address(struct emitter *e, const struct flow_graph *g, LLVMValueRef variable, uint64_t at)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(g->gone); i; i = LLVMGetNextInstruction(i))
        if (LLVMIsAStoreInst(i) && LLVMGetOperand(i, 0) == variable)
            return;
    etch_emit_before(e, LLVMGetBasicBlockTerminator(g->gone));
    store_value(e, g, variable, at);
}

/* The block that stores the values of a head. Its PHIs are those of the head, for whichever back edge is left. */
static bool make_leave(struct emitter *e, struct flow_graph *g, struct node *n)
{
    values now = {0};
    bool whole = true;

    n->leave = LLVMInsertBasicBlockInContext(e->context, g->gone, "");
    etch_emit_at_end(e, n->leave);
    for (unsigned k = 0; k < n_values(n) && whole; k++) {
        LLVMValueRef value = value_of(n, k);

        whole = etch_array_push(&now, is_phi_of(value, n) ? LLVMBuildPhi(e->builder, LLVMTypeOf(value), "") : value);
    }
    store_value(e, g, LLVMGetOperand(n->point, 0), 0);
    for (unsigned k = 0; k < n_values(n) && whole; k++)
        if (!LLVMIsAAllocaInst(now.v[k]))
            store_value(e, g, now.v[k], offset_of(n, k));
    LLVMBuildBr(e->builder, g->gone);
    for (unsigned k = 0; k < n_values(n) && whole; k++)
        if (LLVMIsAAllocaInst(now.v[k]))
            store_address(e, g, now.v[k], offset_of(n, k));
    etch_array_free(&now);
    return whole;
}

static LLVMValueRef incoming(LLVMValueRef phi, LLVMBasicBlockRef from)
{
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) == from)
            return LLVMGetIncomingValue(phi, i);
    return LLVMGetPoison(LLVMTypeOf(phi));
}

/* `turn` leads on to the head, or to the rest, with what `from` has for the head. */
static void add_ways(const struct node *n, LLVMBasicBlockRef from, LLVMBasicBlockRef turn)
{
    LLVMValueRef leave = LLVMGetFirstInstruction(n->leave), value;

    for (unsigned k = 0; k < n_values(n); k++) {
        LLVMValueRef phi = value_of(n, k);

        if (!is_phi_of(phi, n))
            continue;
        value = incoming(phi, from);
        LLVMAddIncoming(leave, &value, &turn, 1);
        leave = LLVMGetNextInstruction(leave);
    }
    for (LLVMValueRef phi = LLVMGetFirstInstruction(n->block); LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi)) {
        value = incoming(phi, from);
        LLVMAddIncoming(phi, &value, &turn, 1);
    }
}

static LLVMValueRef is_full(struct emitter *e, LLVMValueRef cursor)
{
    LLVMValueRef bits = LLVMBuildPtrToInt(e->builder, cursor, e->quad, "");

    bits = LLVMBuildAnd(e->builder, bits, LLVMConstInt(e->quad, ETCH_SOFT_FULL, false), "");
    return LLVMBuildICmp(e->builder, LLVMIntEQ, bits, LLVMConstNull(e->quad), "");
}

bool etch_rest_leave(struct emitter *e, struct flow_graph *g, LLVMValueRef end, uint32_t point, uint32_t node,
                     unsigned edge)
{
    struct node *n = &g->nodes.v[point];
    LLVMBasicBlockRef from = LLVMGetInstructionParent(end), turn;
    LLVMValueRef cursor, branch, lit;

    if (!g->gone)
        make_room(e, g);
    if (!n->leave && !make_leave(e, g, n))
        return false;
    turn = LLVMInsertBasicBlockInContext(e->context, g->gone, "");
    LLVMPositionBuilderBefore(e->builder, end); /* behind its debug records, because it goes away */
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    cursor = LLVMBuildLoad2(e->builder, e->pointer, e->slot, "");
    etch_emit_rarely(e, is_full(e, cursor), turn, n->block);
    branch = LLVMGetPreviousInstruction(end);
    if (g->nodes.v[node].end == end)
        g->nodes.v[node].end = branch;
    LLVMInstructionEraseFromParent(end);
    add_ways(n, from, turn);
    etch_emit_at_end(e, turn);
    cursor = etch_emit_turn(e, g, node, edge, cursor);
    if (!etch_emit_note(e, cursor))
        return false;
    LLVMBuildStore(e->builder, cursor, e->slot);
    lit = LLVMBuildLoad2(e->builder, e->byte, g->lit, "");
    LLVMSetVolatile(lit, true);
    etch_emit_rarely(e, LLVMBuildICmp(e->builder, LLVMIntEQ, lit, LLVMConstNull(e->byte), ""), n->leave, n->block);
    return true;
}
