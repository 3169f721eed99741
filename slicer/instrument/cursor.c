/* SPDX-License-Identifier: MIT */
/* The cursor, the place of the next byte in the ring, within a function. It is in a register as long as no other code
 * looks at it. A cursor in memory would make each byte wait for the byte before. Calls of recorded code take and return
 * the cursor (cursor_abi.c). Before every other call the cursor is written back to the thread's variable, and after the
 * call it is read again, because the called code may lead to code that writes bytes too. A signal handler finds an old
 * value in the variable, and looks at the bytes themselves (runtime.c). */
#include "slicer/instrument/model.h"

#include <stdlib.h>
#include <string.h>

/* The state of a block. */
struct state {
    bool dirty_in, dirty_out; /* bytes were perhaps written since the variable was */
    bool reloads;             /* an invoke leads here: the variable is read at the begin */
};

struct sync {
    struct emitter *e;
    LLVMValueRef function;
    bool cursor_abi;
    struct etch_pointers numbers; /* block -> number in `state` */
    struct state *state;
    size_t n;
};

static struct state *state_of(const struct sync *s, LLVMBasicBlockRef block)
{
    return &s->state[etch_pointers_get(&s->numbers, block)];
}

static bool is_named(LLVMValueRef callee, const char *head)
{
    size_t n;

    return strncmp(LLVMGetValueName2(callee, &n), head, strlen(head)) == 0;
}

/* Most intrinsics are a few instructions; these can be calls. */
static bool may_be_call(LLVMValueRef intrinsic)
{
    static const char *const heads[] = {"llvm.mem",    "llvm.sin",   "llvm.cos",       "llvm.tan",         "llvm.pow",
                                        "llvm.exp",    "llvm.log",   "llvm.fma",       "llvm.fmuladd",     "llvm.ldexp",
                                        "llvm.frexp",  "llvm.round", "llvm.lround",    "llvm.llround",     "llvm.lrint",
                                        "llvm.llrint", "llvm.rint",  "llvm.nearbyint", "llvm.floor",       "llvm.ceil",
                                        "llvm.trunc",  "llvm.eh.",   "llvm.objc",      "llvm.experimental"};
    LLVMValueRef callee = LLVMGetCalledValue(intrinsic);

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (is_named(callee, heads[i]))
            return true;
    return false;
}

static bool is_byte(const struct sync *s, LLVMValueRef i)
{
    return LLVMIsACallInst(i) && etch_pointers_get(&s->e->bytes, i) != ETCH_NONE;
}

/* The program's own assembly may call, too. */
static bool calls_by_asm(const struct sync *s, LLVMValueRef i)
{
    size_t n;
    const char *code = LLVMGetInlineAsmAsmString(LLVMGetCalledValue(i), &n);

    return !is_byte(s, i) && memmem(code, n, "call", 4) != NULL;
}

static bool is_cursor_call(const struct sync *s, LLVMValueRef i)
{
    return etch_pointers_get(&s->e->cursor_calls, i) != ETCH_NONE;
}

/* For a call of code that may have no recorder: the value that says whether it has one; else NULL. */
static LLVMValueRef is_perhaps(const struct sync *s, LLVMValueRef i)
{
    uint32_t number = etch_pointers_get(&s->e->cursor_calls, i);

    return number == ETCH_NONE || number == 0 ? NULL : s->e->is.v[number - 1];
}

/* True if other code may write to the ring meanwhile, and knows the cursor only from the variable. */
static bool is_sync(const struct sync *s, LLVMValueRef i)
{
    if (!LLVMIsACallInst(i) && !LLVMIsAInvokeInst(i))
        return LLVMIsAResumeInst(i) != NULL || (LLVMIsAReturnInst(i) && !s->cursor_abi);
    if (is_cursor_call(s, i))
        return false;
    if (LLVMIsAInlineAsm(LLVMGetCalledValue(i)))
        return calls_by_asm(s, i);
    return !LLVMIsAIntrinsicInst(i) || may_be_call(i);
}

/* ---- Dirty blocks ---- */

static bool dirty_behind(const struct sync *s, LLVMBasicBlockRef block)
{
    const struct state *state = state_of(s, block);
    bool dirty = state->dirty_in && !state->reloads;

    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
        dirty = is_byte(s, i) || is_cursor_call(s, i) || (dirty && !is_sync(s, i));
    return dirty;
}

static void find_dirty(const struct sync *s)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(s->function); b; b = LLVMGetNextBasicBlock(b)) {
            struct state *state = state_of(s, b);
            LLVMValueRef t = LLVMGetBasicBlockTerminator(b);

            if (state->dirty_out || !dirty_behind(s, b))
                continue;
            state->dirty_out = changed = true;
            for (unsigned i = 0; i < LLVMGetNumSuccessors(t); i++)
                state_of(s, LLVMGetSuccessor(t, i))->dirty_in = true;
        }
    }
}

static bool number_blocks(struct sync *s)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(s->function); b; b = LLVMGetNextBasicBlock(b))
        if (!etch_pointers_set(&s->numbers, b, (uint32_t)s->n++))
            return false;
    s->state = calloc(s->n + 1, sizeof(*s->state));
    if (!s->state)
        return false;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(s->function); b; b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef t = LLVMGetBasicBlockTerminator(b);

        for (unsigned i = 0; LLVMIsAInvokeInst(t) && i < LLVMGetNumSuccessors(t); i++)
            if (!is_cursor_call(s, t) || LLVMGetSuccessor(t, i) == LLVMGetUnwindDest(t))
                state_of(s, LLVMGetSuccessor(t, i))->reloads = true;
    }
    state_of(s, LLVMGetEntryBasicBlock(s->function))->dirty_in = s->cursor_abi;
    return true;
}

/* ---- Code ---- */

static void stand_before(const struct emitter *e, LLVMValueRef instruction)
{
    LLVMPositionBuilderBeforeInstrAndDbgRecords(e->builder, instruction);
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
}

static LLVMValueRef copy(const struct emitter *e, LLVMValueRef from, LLVMValueRef to)
{
    return LLVMBuildStore(e->builder, LLVMBuildLoad2(e->builder, e->pointer, from, ""), to);
}

static bool leads_to_reload(const struct sync *s, LLVMValueRef terminator)
{
    for (unsigned i = 0; i < LLVMGetNumSuccessors(terminator); i++)
        if (state_of(s, LLVMGetSuccessor(terminator, i))->reloads)
            return true;
    return false;
}

static LLVMValueRef first_place(LLVMBasicBlockRef block)
{
    LLVMValueRef i = LLVMGetFirstInstruction(block);

    while (LLVMIsAPHINode(i) || LLVMIsALandingPadInst(i))
        i = LLVMGetNextInstruction(i);
    return i;
}

static LLVMValueRef load_slot(const struct emitter *e)
{
    return LLVMBuildLoad2(e->builder, e->pointer, e->slot, "");
}

/* The cursor after a call with the cursor ABI. If the called function had no recorder, the cursor is in the
 * variable. */
static LLVMValueRef place_behind(const struct sync *s, LLVMValueRef call)
{
    const struct emitter *e = s->e;
    LLVMValueRef place = call, is = is_perhaps(s, call);

    if (LLVMTypeOf(call) != e->pointer)
        place = LLVMBuildExtractValue(e->builder, call, 0, "");
    if (is)
        place = LLVMBuildSelect(e->builder, is, place, LLVMBuildLoad2(e->builder, e->pointer, e->cursor, ""), "");
    return place;
}

static void convert_call(const struct sync *s, LLVMValueRef call)
{
    LLVMValueRef next = LLVMGetNextInstruction(call), is = is_perhaps(s, call);

    stand_before(s->e, call);
    LLVMSetOperand(call, LLVMGetNumArgOperands(call) - 1, load_slot(s->e));
    if (next && LLVMIsAReturnInst(next) && LLVMGetOperand(next, 0) == call)
        return;
    if (is)
        next = LLVMGetNextInstruction(is);
    stand_before(s->e, next ? next : LLVMGetFirstInstruction(LLVMGetNormalDest(call)));
    LLVMBuildStore(s->e->builder, place_behind(s, call), s->e->slot);
}

/* A function with the cursor ABI returns the cursor, too. */
static void give_back(const struct sync *s, LLVMValueRef end)
{
    const struct emitter *e = s->e;
    LLVMValueRef value = LLVMGetOperand(end, 0);

    if (is_cursor_call(s, value))
        return;
    stand_before(e, end);
    if (LLVMTypeOf(value) == e->pointer)
        value = load_slot(e);
    else
        value = LLVMBuildInsertValue(e->builder, value, load_slot(e), 0, "");
    LLVMSetOperand(end, 0, value);
}

static void write_back(const struct sync *s, LLVMValueRef before)
{
    stand_before(s->e, before);
    copy(s->e, s->e->slot, s->e->cursor);
}

static void sync_block(const struct sync *s, LLVMBasicBlockRef block)
{
    const struct state *state = state_of(s, block);
    bool dirty = state->dirty_in && !state->reloads;
    LLVMValueRef i = LLVMGetFirstInstruction(block), next;

    if (state->reloads) {
        stand_before(s->e, first_place(block));
        copy(s->e, s->e->cursor, s->e->slot);
    }
    for (; i; i = next) {
        bool ends = LLVMIsATerminatorInst(i);

        next = LLVMGetNextInstruction(i);
        if (is_byte(s, i))
            dirty = true;
        if (is_cursor_call(s, i)) {
            if (dirty && is_perhaps(s, i))
                write_back(s, i);
            convert_call(s, i);
            dirty = true;
            continue;
        }
        if (s->cursor_abi && LLVMIsAReturnInst(i))
            give_back(s, i);
        if (!is_sync(s, i) && !(ends && leads_to_reload(s, i)))
            continue;
        if (dirty)
            write_back(s, i);
        dirty = false;
        if (ends)
            continue;
        stand_before(s->e, next);
        if (!LLVMIsAReturnInst(next) || s->cursor_abi) /* no code may follow a call that can be a jump */
            copy(s->e, s->e->cursor, s->e->slot);
    }
}

void etch_cursor_open(struct emitter *e, LLVMValueRef function)
{
    etch_pointers_release(&e->bytes);
    etch_pointers_release(&e->cursor_calls);
    memset(&e->bytes, 0, sizeof(e->bytes));
    memset(&e->cursor_calls, 0, sizeof(e->cursor_calls));
    e->is.n = 0;
    stand_before(e, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
    e->slot = LLVMBuildAlloca(e->builder, e->pointer, "");
    e->passed = LLVMBuildAlloca(e->builder, e->quad, "");
    e->opened = etch_has_cursor_abi(function) ? LLVMBuildStore(e->builder, LLVMGetLastParam(function), e->slot)
                                              : copy(e, e->cursor, e->slot);
}

bool etch_cursor_close(struct emitter *e, LLVMValueRef function)
{
    struct sync s = {.e = e, .function = function, .cursor_abi = etch_has_cursor_abi(function)};
    bool whole = number_blocks(&s);

    if (whole) {
        find_dirty(&s);
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
            sync_block(&s, b);
    }
    etch_pointers_release(&s.numbers);
    free(s.state);
    return whole;
}
