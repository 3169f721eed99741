/* SPDX-License-Identifier: MIT */
/* Makes the rest of a function out of a copy: see rest.h. */
#include "slicer/instrument/rest.h"

#include "slicer/instrument/live.h"
#include "slicer/instrument/loops.h"

#include <llvm-c/Comdat.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

#define POINT "etch_soft_rest_point" /* etch_calls_nobody() knows the beginning */
#define HEADS 256u                   /* most loops of a function that can be left */
#define RECORD 4096u                 /* most bytes of a record */
#define SHARE 8u                     /* instructions of the function for each value of a record */
#define LEAST 32u                    /* values of records that any function may have */

/* ---- Which functions ---- */

static bool is_call_of(LLVMValueRef i, const char *head)
{
    LLVMValueRef callee = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
    size_t n;

    return callee && LLVMIsAFunction(callee) && strncmp(LLVMGetValueName2(callee, &n), head, strlen(head)) == 0;
}

/* What an invoke returns can be stored at the begin of such a block. */
static bool is_alone_behind(LLVMBasicBlockRef block)
{
    unsigned n = LLVMIsAPHINode(LLVMGetFirstInstruction(block)) ? 1 : 0;

    for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u; u = LLVMGetNextUse(u))
        n++;
    return n == 1;
}

/* A variable of changing size, and what restores the stack, belong to one frame. */
static bool is_bound_to_frame(LLVMValueRef i, LLVMBasicBlockRef entry)
{
    if (LLVMIsAAllocaInst(i))
        return LLVMGetInstructionParent(i) != entry || !LLVMIsAConstantInt(LLVMGetOperand(i, 0));
    if (LLVMIsACallInst(i) || LLVMIsAInvokeInst(i))
        return is_call_of(i, "llvm.stack") || is_call_of(i, "llvm.localescape") || is_call_of(i, "llvm.va_") ||
               (LLVMIsAInvokeInst(i) && !is_alone_behind(LLVMGetNormalDest(i)));
    return LLVMIsACallBrInst(i) != NULL;
}

bool etch_rest_allows(LLVMValueRef function)
{
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);

    for (LLVMBasicBlockRef b = entry; b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            if (is_bound_to_frame(i, entry))
                return false;
    return LLVMGetNextBasicBlock(entry) != NULL;
}

/* ---- The values at the heads ---- */

struct head {
    uint32_t block;
    ETCH_ARRAY(uint32_t) live; /* numbers of values */
};

struct making {
    struct emitter *e;
    struct live from, to; /* the function, and its copy */
    ETCH_ARRAY(struct head) heads;
    LLVMValueRef *slot; /* by number: the variable of the rest that has the value; NULL: none is needed */
    uint64_t *offset;   /* by number: where the value lies in the record; 0: nowhere */
    uint64_t size;      /* of the record */
    bool *reached;      /* by block: control can come there from a head */
};

static LLVMValueRef first_place(LLVMBasicBlockRef block)
{
    LLVMValueRef i = LLVMGetFirstInstruction(block);

    while (LLVMIsAPHINode(i) || LLVMIsALandingPadInst(i))
        i = LLVMGetNextInstruction(i);
    return i;
}

/* A value has the same place in the record whichever head the rest begins at. */
static void give_place(struct making *m, uint32_t i)
{
    LLVMTypeRef type = LLVMTypeOf(m->from.all.v[i]);
    uint64_t size = LLVMABISizeOfType(LLVMGetModuleDataLayout(m->e->module), type), align = size > 8 ? 16 : 8;

    if (m->offset[i])
        return;
    m->offset[i] = (m->size + align - 1) / align * align;
    m->size = m->offset[i] + size;
}

static bool can_be_stored(LLVMTypeRef type)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);

    return kind != LLVMTokenTypeKind && kind != LLVMMetadataTypeKind && kind != LLVMX86_AMXTypeKind &&
           kind != LLVMLabelTypeKind && kind != LLVMScalableVectorTypeKind && LLVMTypeIsSized(type);
}

static bool is_phi_of(LLVMValueRef value, LLVMBasicBlockRef block)
{
    return LLVMIsAPHINode(value) && LLVMGetInstructionParent(value) == block;
}

/* False if memory is short. `*fits`: all values can be in a record. */
static bool add_head(struct making *m, uint32_t block, bool *fits)
{
    struct head head = {.block = block};

    for (uint32_t i = 0; i < m->from.all.n; i++) {
        LLVMValueRef value = m->from.all.v[i];

        if (!etch_live_in(&m->from, block, i) && !(is_phi_of(value, m->from.blocks.v[block]) && LLVMGetFirstUse(value)))
            continue;
        if (!can_be_stored(LLVMTypeOf(value))) {
            *fits = false;
            break;
        }
        if (!etch_array_push(&head.live, i)) {
            etch_array_free(&head.live);
            return false;
        }
    }
    if (*fits && etch_array_push(&m->heads, head))
        return true;
    etch_array_free(&head.live);
    return !*fits;
}

static bool is_landing(LLVMBasicBlockRef block)
{
    LLVMValueRef before = LLVMGetPreviousInstruction(first_place(block));

    return before && LLVMIsALandingPadInst(before);
}

/* Addresses of variables are stored once for all heads. */
static size_t count_stores(const struct making *m, const struct head *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->live.n; i++)
        n += !LLVMIsAAllocaInst(m->from.all.v[h->live.v[i]]);
    return n;
}

/* The way from the record to each head, and from the loop to the record, is code. So outer loops come first, up to a
 * share of the function's own code. An inner loop that cannot be left comes back to the outer one. */
static bool choose_heads(struct making *m)
{
    struct loops loops = {0};
    size_t room = m->from.all.n / SHARE + LEAST;
    bool whole = etch_loops_open(&loops, &m->from);

    for (size_t i = 0; i < loops.n && whole && m->heads.n < HEADS; i++) {
        bool fits = !is_landing(m->from.blocks.v[loops.v[i].head]);
        size_t had = m->heads.n;

        if (fits)
            whole = add_head(m, loops.v[i].head, &fits);
        if (m->heads.n == had)
            continue;
        if (count_stores(m, &m->heads.v[had]) > room || m->size > RECORD) {
            etch_array_free(&m->heads.v[had].live);
            m->heads.n = had;
        } else {
            room -= count_stores(m, &m->heads.v[had]);
            for (size_t k = 0; k < m->heads.v[had].live.n; k++)
                give_place(m, m->heads.v[had].live.v[k]);
        }
    }
    etch_loops_release(&loops);
    return whole;
}

/* Is the copy one, instruction by instruction? */
static bool is_same(const struct making *m)
{
    if (m->from.all.n != m->to.all.n || m->from.blocks.n != m->to.blocks.n)
        return false;
    for (size_t i = 0; i < m->from.all.n; i++)
        if (LLVMIsAInstruction(m->from.all.v[i]) &&
            (!LLVMIsAInstruction(m->to.all.v[i]) ||
             LLVMGetInstructionOpcode(m->from.all.v[i]) != LLVMGetInstructionOpcode(m->to.all.v[i])))
            return false;
    return true;
}

static bool note_point(struct making *m, uint32_t k)
{
    struct emitter *e = m->e;
    const struct head *h = &m->heads.v[k];
    LLVMTypeRef type = LLVMFunctionType(e->void_type, NULL, 0, true);
    LLVMValueRef point = LLVMGetNamedFunction(e->module, POINT),
                 *operands = calloc(2 * h->live.n + 1, sizeof(*operands));

    if (!operands)
        return false;
    if (!point)
        point = LLVMAddFunction(e->module, POINT, type);
    operands[0] = LLVMConstInt(e->quad, k, false);
    for (size_t i = 0; i < h->live.n; i++) {
        operands[2 * i + 1] = LLVMConstInt(e->quad, m->offset[h->live.v[i]], false);
        operands[2 * i + 2] = m->from.all.v[h->live.v[i]];
    }
    etch_emit_before(e, first_place(m->from.blocks.v[h->block]));
    LLVMBuildCall2(e->builder, type, point, operands, 2 * (unsigned)h->live.n + 1, "");
    free(operands);
    return true;
}

/* ---- The rest ---- */

static LLVMValueRef load_before(struct making *m, LLVMValueRef next, LLVMValueRef slot)
{
    etch_emit_before(m->e, next);
    return LLVMBuildLoad2(m->e->builder, LLVMGetAllocatedType(slot), slot, "");
}

/* Values that come from one block several times are the same. */
static void load_incoming(struct making *m, LLVMValueRef phi, LLVMValueRef value, LLVMValueRef slot)
{
    unsigned n = LLVMCountIncoming(phi);

    for (unsigned i = 0; i < n; i++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        LLVMValueRef loaded;

        if (LLVMGetIncomingValue(phi, i) != value)
            continue;
        loaded = load_before(m, LLVMGetBasicBlockTerminator(from), slot);
        for (unsigned k = i; k < n; k++)
            if (LLVMGetIncomingBlock(phi, k) == from)
                LLVMSetOperand(phi, k, loaded);
    }
}

static void load_at_uses(struct making *m, LLVMValueRef value, LLVMValueRef slot)
{
    LLVMUseRef use;

    while ((use = LLVMGetFirstUse(value))) {
        LLVMValueRef user = LLVMGetUser(use), loaded;

        if (LLVMIsAPHINode(user)) {
            load_incoming(m, user, value, slot);
            continue;
        }
        loaded = load_before(m, user, slot);
        for (int k = 0; k < LLVMGetNumOperands(user); k++)
            if (LLVMGetOperand(user, (unsigned)k) == value)
                LLVMSetOperand(user, (unsigned)k, loaded);
    }
}

static LLVMValueRef place_behind(LLVMValueRef value)
{
    if (LLVMIsAInvokeInst(value))
        return first_place(LLVMGetNormalDest(value));
    return LLVMIsAPHINode(value) ? first_place(LLVMGetInstructionParent(value)) : LLVMGetNextInstruction(value);
}

static bool reach(struct making *m)
{
    uint32_t *stack = calloc(m->to.blocks.n + 1, sizeof(*stack));
    size_t n = 0;

    for (size_t k = 0; k < m->heads.n && stack; k++) {
        if (m->reached[m->heads.v[k].block])
            continue;
        m->reached[stack[n++] = m->heads.v[k].block] = true;
        while (n) {
            LLVMValueRef end = LLVMGetBasicBlockTerminator(m->to.blocks.v[stack[--n]]);

            for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++) {
                uint32_t to = etch_pointers_get(&m->to.block, LLVMGetSuccessor(end, i));

                if (!m->reached[to])
                    m->reached[stack[n++] = to] = true;
            }
        }
    }
    free(stack);
    return stack != NULL;
}

static LLVMValueRef load_place(struct making *m, LLVMValueRef rest, uint32_t i)
{
    LLVMValueRef at = LLVMConstInt(m->e->quad, m->offset[i], false);

    at = LLVMBuildInBoundsGEP2(m->e->builder, m->e->byte, LLVMGetParam(rest, 0), &at, 1, "");
    return LLVMBuildLoad2(m->e->builder, LLVMTypeOf(m->to.all.v[i]), at, "");
}

/* Parameters, variables, and what was computed before the loops. */
static bool is_constant(const struct making *m, uint32_t i)
{
    LLVMValueRef value = m->to.all.v[i];

    return !LLVMIsAInstruction(value) || !m->reached[etch_pointers_get(&m->to.block, LLVMGetInstructionParent(value))];
}

/* The value is in a variable from now on. It can come from the function's own code, or from the record. */
static void give_slot(struct making *m, uint32_t i, LLVMBasicBlockRef entry)
{
    LLVMValueRef value = m->to.all.v[i];

    etch_emit_at_end(m->e, entry);
    m->slot[i] = LLVMBuildAlloca(m->e->builder, LLVMTypeOf(value), "");
    load_at_uses(m, value, m->slot[i]);
    if (!LLVMIsAInstruction(value))
        return;
    etch_emit_before(m->e, place_behind(value));
    LLVMBuildStore(m->e->builder, value, m->slot[i]);
}

static void give_slots(struct making *m, LLVMValueRef rest, LLVMBasicBlockRef entry)
{
    for (uint32_t i = 0; i < m->to.all.n; i++)
        if (m->offset[i] && is_constant(m, i)) {
            etch_emit_at_end(m->e, entry);
            LLVMReplaceAllUsesWith(m->to.all.v[i], load_place(m, rest, i));
        }
    for (size_t k = 0; k < m->heads.n; k++)
        for (size_t i = 0; i < m->heads.v[k].live.n; i++) {
            uint32_t number = m->heads.v[k].live.v[i];

            if (!m->slot[number] && !is_constant(m, number) &&
                !is_phi_of(m->to.all.v[number], m->to.blocks.v[m->heads.v[k].block]))
                give_slot(m, number, entry);
        }
}

static void complete_phis(LLVMBasicBlockRef head, LLVMBasicBlockRef begin)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(head); LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i)) {
        unsigned n = LLVMCountIncoming(i);
        LLVMValueRef nothing = LLVMGetPoison(LLVMTypeOf(i));

        if (!n || LLVMGetIncomingBlock(i, n - 1) != begin)
            LLVMAddIncoming(i, &nothing, &begin, 1);
    }
}

/* The way from the record to a head. */
static LLVMBasicBlockRef make_begin(struct making *m, LLVMValueRef rest, const struct head *h)
{
    LLVMBasicBlockRef begin = LLVMAppendBasicBlockInContext(m->e->context, rest, ""), head = m->to.blocks.v[h->block];

    etch_emit_at_end(m->e, begin);
    for (size_t i = 0; i < h->live.n; i++) {
        LLVMValueRef value = m->to.all.v[h->live.v[i]], loaded;

        if (is_constant(m, h->live.v[i]))
            continue;
        loaded = load_place(m, rest, h->live.v[i]);
        if (is_phi_of(value, head))
            LLVMAddIncoming(value, &loaded, &begin, 1);
        else
            LLVMBuildStore(m->e->builder, loaded, m->slot[h->live.v[i]]);
    }
    LLVMBuildBr(m->e->builder, head);
    complete_phis(head, begin);
    return begin;
}

static void dispatch(struct making *m, LLVMValueRef rest, LLVMBasicBlockRef entry)
{
    LLVMValueRef which, ways = NULL;

    etch_emit_at_end(m->e, entry);
    which = LLVMBuildLoad2(m->e->builder, m->e->quad, LLVMGetParam(rest, 0), "");
    for (size_t k = 0; k < m->heads.n; k++) {
        LLVMBasicBlockRef begin = make_begin(m, rest, &m->heads.v[k]);

        if (!ways) {
            etch_emit_at_end(m->e, entry);
            ways = LLVMBuildSwitch(m->e->builder, which, begin, (unsigned)m->heads.n);
        } else {
            LLVMAddCase(ways, LLVMConstInt(m->e->quad, k, false), begin);
        }
    }
}

/* Parameters are values of the record, and the code before the loops is not reached. LLVM drops it. */
static LLVMValueRef build_rest(struct making *m, LLVMValueRef copy)
{
    struct emitter *e = m->e;
    LLVMTypeRef type = LLVMFunctionType(LLVMGetReturnType(LLVMGlobalGetValueType(copy)), &e->pointer, 1, false);
    LLVMValueRef rest = LLVMAddFunction(e->module, "", type);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(e->context, rest, "");
    char *name;
    size_t n;

    etch_copy_result_shape(copy, rest);
    etch_move_code(copy, rest);
    give_slots(m, rest, entry);
    dispatch(m, rest, entry);
    for (unsigned i = 0; i < LLVMCountParams(copy); i++)
        LLVMReplaceAllUsesWith(LLVMGetParam(copy, i), LLVMGetPoison(LLVMTypeOf(LLVMGetParam(copy, i))));
    LLVMSetLinkage(rest, LLVMInternalLinkage);
    name = strdup(LLVMGetValueName2(copy, &n));
    LLVMSetValueName2(copy, "", 0);
    if (name)
        LLVMSetValueName2(rest, name, strlen(name));
    free(name);
    return rest;
}

bool etch_rest_make(struct emitter *e, LLVMValueRef function, LLVMValueRef copy, LLVMValueRef *rest)
{
    struct making m = {.e = e, .size = 16};
    bool whole = etch_live_open(&m.from, function) && etch_live_open(&m.to, copy);

    *rest = NULL;
    m.slot = whole ? calloc(m.from.all.n + 1, sizeof(*m.slot)) : NULL;
    m.offset = whole ? calloc(m.from.all.n + 1, sizeof(*m.offset)) : NULL;
    m.reached = whole ? calloc(m.to.blocks.n + 1, sizeof(*m.reached)) : NULL;
    whole = m.slot && m.offset && m.reached && (!is_same(&m) || choose_heads(&m));
    whole = whole && reach(&m);
    if (whole && m.heads.n) {
        for (uint32_t k = 0; k < m.heads.n && whole; k++)
            whole = note_point(&m, k);
        *rest = build_rest(&m, copy);
    }
    for (size_t k = 0; k < m.heads.n; k++)
        etch_array_free(&m.heads.v[k].live);
    etch_array_free(&m.heads);
    etch_live_release(&m.from);
    etch_live_release(&m.to);
    free(m.slot);
    free(m.offset);
    free(m.reached);
    if (whole)
        LLVMDeleteFunction(copy);
    return whole;
}

LLVMValueRef etch_rest_point(LLVMBasicBlockRef block)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
        if (is_call_of(i, POINT))
            return i;
    return NULL;
}
