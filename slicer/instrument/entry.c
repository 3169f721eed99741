/* SPDX-License-Identifier: MIT */
/* The entry into recorded code from code without a recorder. The entry itself writes the data that the runtime needs,
 * in some twenty instructions. The runtime is called only in rare cases: a thread's first entry, a full chunk, a signal
 * handler. Those calls are assembly that saves all registers, so that the arguments and the result stay in their
 * registers. */
#include "slicer/instrument/model.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void etch_emit_at_end(struct emitter *e, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderAtEnd(e->builder, block);
    LLVMSetCurrentDebugLocation2(e->builder, NULL); /* else that of where it stood before, in another function */
}

/* ---- Like another function ---- */

static void copy_attributes(LLVMValueRef from, LLVMValueRef to, LLVMAttributeIndex index, LLVMValueRef call)
{
    unsigned n = LLVMGetAttributeCountAtIndex(from, index);
    LLVMAttributeRef *all = calloc(n + 1, sizeof(*all));

    if (!all)
        return;
    LLVMGetAttributesAtIndex(from, index, all);
    for (unsigned i = 0; i < n; i++) {
        if (to)
            LLVMAddAttributeAtIndex(to, index, all[i]);
        if (call)
            LLVMAddCallSiteAttribute(call, index, all[i]);
    }
    free(all);
}

void etch_copy_shape(LLVMValueRef from, LLVMValueRef to)
{
    LLVMSetFunctionCallConv(to, LLVMGetFunctionCallConv(from));
    copy_attributes(from, to, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, NULL);
    for (unsigned i = 0; i <= LLVMCountParams(from); i++)
        copy_attributes(from, to, i, NULL);
}

void etch_copy_result_shape(LLVMValueRef from, LLVMValueRef to)
{
    copy_attributes(from, to, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, NULL);
    copy_attributes(from, to, 0, NULL);
}

void etch_copy_call_shape(LLVMValueRef from, LLVMValueRef call)
{
    for (unsigned i = 0; i <= LLVMCountParams(from); i++)
        copy_attributes(from, NULL, i, call);
}

/* ---- Values ---- */

static LLVMValueRef intrinsic_pointer(struct emitter *e, const char *name)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    bool frame = strcmp(name, "llvm.frameaddress") == 0;
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, &e->pointer, frame ? 1 : 0);
    LLVMValueRef zero = LLVMConstInt(e->word, 0, false);

    return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(function), function, &zero, 1, "");
}

static LLVMValueRef behind(struct emitter *e, LLVMValueRef pointer, size_t bytes)
{
    LLVMValueRef distance = LLVMConstInt(e->quad, bytes, false);

    return LLVMBuildInBoundsGEP2(e->builder, e->byte, pointer, &distance, 1, "");
}

/* In the order that is written here: a signal handler, and the reader after a death, see it at any instruction. */
static void set(struct emitter *e, LLVMValueRef value, LLVMValueRef to)
{
    LLVMValueRef store = LLVMBuildStore(e->builder, value, to);

    LLVMSetVolatile(store, true);
    LLVMSetAlignment(store, 1);
}

static LLVMValueRef get(struct emitter *e, LLVMTypeRef type, LLVMValueRef from)
{
    LLVMValueRef load = LLVMBuildLoad2(e->builder, type, from, "");

    LLVMSetVolatile(load, true);
    LLVMSetAlignment(load, 1);
    return load;
}

static LLVMValueRef byte_of(struct emitter *e, unsigned value)
{
    return LLVMConstInt(e->byte, value, false);
}

static LLVMValueRef is_equal(struct emitter *e, LLVMValueRef value, uint64_t constant)
{
    return LLVMBuildICmp(e->builder, LLVMIntEQ, value, LLVMConstInt(LLVMTypeOf(value), constant, false), "");
}

static LLVMValueRef is_full(struct emitter *e, LLVMValueRef cur)
{
    LLVMValueRef bits = LLVMBuildPtrToInt(e->builder, cur, e->quad, "");

    return is_equal(e, LLVMBuildAnd(e->builder, bits, LLVMConstInt(e->quad, ETCH_SOFT_FULL, false), ""), 0);
}

static LLVMValueRef new_act(struct emitter *e)
{
    return LLVMBuildAlloca(e->builder, LLVMArrayType2(e->quad, sizeof(struct etch_soft_act) / sizeof(uint64_t)), "");
}

/* ---- Ways that are hardly taken ---- */

static LLVMBasicBlockRef new_block(struct emitter *e, LLVMValueRef function)
{
    return LLVMAppendBasicBlockInContext(e->context, function, "");
}

void etch_emit_rarely(struct emitter *e, LLVMValueRef so, LLVMBasicBlockRef rare, LLVMBasicBlockRef next)
{
    LLVMMetadataRef weights[3] = {LLVMMDStringInContext2(e->context, "branch_weights", 14),
                                  LLVMValueAsMetadata(LLVMConstInt(e->word, 1, false)),
                                  LLVMValueAsMetadata(LLVMConstInt(e->word, 100000, false))};
    LLVMValueRef branch = LLVMBuildCondBr(e->builder, so, rare, next);

    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->context, "prof", 4),
                    LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, weights, 3)));
}

/* Goes to `rare` if so, else on. */
static void unless(struct emitter *e, LLVMValueRef so, LLVMBasicBlockRef rare)
{
    LLVMBasicBlockRef next = new_block(e, LLVMGetBasicBlockParent(rare));

    etch_emit_rarely(e, so, rare, next);
    etch_emit_at_end(e, next);
}

/* Reads no more bytes than code with such a first byte must have. */
static void unless_code(struct emitter *e, LLVMBasicBlockRef block, LLVMValueRef at, LLVMTypeRef type, uint64_t code,
                        LLVMBasicBlockRef rare, LLVMBasicBlockRef usual)
{
    etch_emit_at_end(e, block);
    unless(e, is_equal(e, get(e, type, behind(e, at, 1)), code), rare);
    LLVMBuildBr(e->builder, usual);
}

/* Checks whether the code at the return address begins like the kernel's return from a signal handler: `mov $15, %rax`
 * or `mov $15, %eax`. The runtime looks closer. */
static void unless_handler(struct emitter *e, LLVMValueRef function, LLVMBasicBlockRef rare)
{
    LLVMValueRef at = intrinsic_pointer(e, "llvm.returnaddress"), first = get(e, e->byte, at), ways;
    LLVMBasicBlockRef usual = new_block(e, function), wide = new_block(e, function), narrow = new_block(e, function);

    ways = LLVMBuildSwitch(e->builder, first, usual, 2);
    LLVMAddCase(ways, byte_of(e, 0x48), wide);
    LLVMAddCase(ways, byte_of(e, 0xb8), narrow);
    unless_code(e, wide, at, LLVMInt16TypeInContext(e->context), 0xc0c7, rare, usual);
    unless_code(e, narrow, at, e->word, 15, rare, usual);
    etch_emit_at_end(e, usual);
}

static LLVMValueRef call_saved(struct emitter *e, const char *code, LLVMTypeRef result, const char *constraints,
                               LLVMValueRef *arguments, unsigned n)
{
    LLVMTypeRef types[2] = {e->pointer, e->pointer}, type = LLVMFunctionType(result, types, n, false);
    LLVMValueRef text = LLVMGetInlineAsm(type, code, strlen(code), constraints, strlen(constraints), true, false,
                                         LLVMInlineAsmDialectATT, false);

    return LLVMBuildCall2(e->builder, type, text, arguments, n, "");
}

/* ---- In ---- */

LLVMValueRef etch_emit_own_entry(struct emitter *e, LLVMValueRef body)
{
    LLVMValueRef act = new_act(e), frame;
    LLVMValueRef arguments[4] = {act, LLVMBuildPtrToInt(e->builder, body, e->quad, "")};

    frame = LLVMBuildPtrToInt(e->builder, intrinsic_pointer(e, "llvm.frameaddress"), e->quad, "");
    arguments[2] = LLVMBuildOr(e->builder, frame, LLVMConstInt(e->quad, 1, false), "");
    arguments[3] = intrinsic_pointer(e, "llvm.returnaddress");
    LLVMBuildCall2(e->builder, e->enter_type, e->enter, arguments, 4, "");
    return act;
}

/* The act is whole before it counts, and the record before its first byte. */
static LLVMValueRef enter_quickly(struct emitter *e, LLVMValueRef act, LLVMValueRef top, LLVMValueRef cur,
                                  LLVMValueRef body)
{
    LLVMValueRef next;

    set(e, top, behind(e, act, offsetof(struct etch_soft_act, prev)));
    set(e, intrinsic_pointer(e, "llvm.frameaddress"), behind(e, act, offsetof(struct etch_soft_act, frame)));
    set(e, LLVMConstInt(e->quad, 0, false), behind(e, act, offsetof(struct etch_soft_act, flags)));
    set(e, act, e->top);
    set(e, body, behind(e, cur, 1));
    set(e, byte_of(e, ETCH_SOFT_ENTRY), cur);
    next = behind(e, cur, ETCH_SOFT_ENTRY_SIZE);
    set(e, next, e->cursor);
    return next;
}

/* Returns the cursor for the body. The ring may have bytes after the variable's cursor: code that a handler without a
 * recorder interrupted has written them. */
static LLVMValueRef enter(struct emitter *e, LLVMValueRef entry, LLVMValueRef act, LLVMValueRef body)
{
    LLVMBasicBlockRef rare = new_block(e, entry), on = new_block(e, entry), from[2];
    LLVMValueRef cur = get(e, e->pointer, e->cursor), top, next[2], arguments[2] = {act, body}, phi;

    unless(e, is_full(e, cur), rare);
    unless(e, LLVMBuildNot(e->builder, is_equal(e, get(e, e->byte, cur), ETCH_SOFT_NOTHING), ""), rare);
    top = get(e, e->pointer, e->top);
    unless_handler(e, entry, rare);
    next[0] = enter_quickly(e, act, top, cur, body);
    from[0] = LLVMGetInsertBlock(e->builder);
    LLVMBuildBr(e->builder, on);
    etch_emit_at_end(e, rare);
    next[1] = call_saved(e, "call etch_soft_entered3", e->pointer, "={r10},{r11},0,~{memory},~{flags}", arguments, 2);
    from[1] = rare;
    LLVMBuildBr(e->builder, on);
    etch_emit_at_end(e, on);
    phi = LLVMBuildPhi(e->builder, e->pointer, "");
    LLVMAddIncoming(phi, next, from, 2);
    return phi;
}

/* ---- Out ---- */

static void leave(struct emitter *e, LLVMValueRef entry, LLVMValueRef act, LLVMValueRef cur)
{
    LLVMBasicBlockRef rare = new_block(e, entry), on = new_block(e, entry);
    LLVMValueRef flags, prev;

    unless(e, is_full(e, cur), rare);
    flags = get(e, e->quad, behind(e, act, offsetof(struct etch_soft_act, flags)));
    unless(e, LLVMBuildNot(e->builder, is_equal(e, flags, 0), ""), rare);
    prev = get(e, e->pointer, behind(e, act, offsetof(struct etch_soft_act, prev)));
    set(e,
        LLVMBuildSelect(e->builder, LLVMBuildIsNull(e->builder, prev, ""), byte_of(e, ETCH_SOFT_END),
                        byte_of(e, ETCH_SOFT_LEFT), ""),
        cur);
    set(e, behind(e, cur, 1), e->cursor);
    set(e, prev, e->top);
    LLVMBuildBr(e->builder, on);
    etch_emit_at_end(e, rare);
    set(e, cur, e->cursor);
    call_saved(e, "call etch_soft_left3", e->void_type, "{r11},~{memory},~{flags}", &act, 1);
    LLVMBuildBr(e->builder, on);
    etch_emit_at_end(e, on);
}

/* An exception goes on through the entry, which is then left. */
static void clean_up(struct emitter *e, LLVMBasicBlockRef block, LLVMValueRef act)
{
    LLVMTypeRef parts[2] = {e->pointer, e->word};
    LLVMValueRef pad;

    etch_emit_at_end(e, block);
    pad = LLVMBuildLandingPad(e->builder, LLVMStructTypeInContext(e->context, parts, 2, false), NULL, 0, "");
    LLVMSetCleanup(pad, true);
    LLVMBuildCall2(e->builder, e->leave_type, e->unwind, &act, 1, "");
    LLVMBuildResume(e->builder, pad);
}

static LLVMValueRef personality(struct emitter *e, LLVMValueRef body)
{
    LLVMValueRef named = LLVMGetNamedFunction(e->module, "__gxx_personality_v0");

    if (LLVMHasPersonalityFn(body))
        return LLVMGetPersonalityFn(body);
    if (named)
        return named;
    named = LLVMGetNamedFunction(e->module, "__gcc_personality_v0");
    return named ? named : LLVMAddFunction(e->module, "__gcc_personality_v0", LLVMFunctionType(e->word, NULL, 0, true));
}

/* ---- The entry ---- */

static LLVMValueRef call_body(struct emitter *e, LLVMValueRef entry, LLVMValueRef body, LLVMValueRef act,
                              LLVMValueRef cur)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(body);
    unsigned n = LLVMCountParams(body);
    LLVMValueRef *arguments = calloc(n + 1, sizeof(*arguments)), call;
    bool unwinds = !etch_has_attribute(body, "nounwind");

    if (!arguments)
        return NULL;
    LLVMGetParams(entry, arguments);
    arguments[n - 1] = cur;
    if (unwinds) {
        LLVMBasicBlockRef next = new_block(e, entry), pad = new_block(e, entry);

        LLVMSetPersonalityFn(entry, personality(e, body));
        call = LLVMBuildInvoke2(e->builder, type, body, arguments, n, next, pad, "");
        clean_up(e, pad, act);
        etch_emit_at_end(e, next);
    } else {
        call = LLVMBuildCall2(e->builder, type, body, arguments, n, "");
    }
    LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(body));
    etch_copy_call_shape(body, call);
    free(arguments);
    return call;
}

LLVMValueRef etch_emit_entry(struct emitter *e, LLVMValueRef body, LLVMValueRef like, const char *name)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(like);
    LLVMValueRef entry = LLVMAddFunction(e->module, name, type), act, result;
    bool nothing = LLVMGetReturnType(type) == e->void_type;

    etch_copy_shape(like, entry);
    if (LLVMGetSection(body) && LLVMGetSection(body)[0])
        LLVMSetSection(entry, LLVMGetSection(body));
    etch_emit_at_end(e, new_block(e, entry));
    act = new_act(e);
    result = call_body(e, entry, body, act, enter(e, entry, act, body));
    if (!result)
        return NULL;
    leave(e, entry, act, nothing ? result : LLVMBuildExtractValue(e->builder, result, 0, ""));
    if (nothing)
        LLVMBuildRetVoid(e->builder);
    else
        LLVMBuildRet(e->builder, LLVMBuildExtractValue(e->builder, result, 1, ""));
    return entry;
}
