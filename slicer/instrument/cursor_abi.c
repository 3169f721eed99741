/* SPDX-License-Identifier: MIT */
/* The cursor, the place of the next byte in the ring, is passed from function to function in registers. Recorded code
 * takes it as one more argument, in r10, and returns it in rax, before the function's own result. If the cursor were
 * passed in memory, each call and each return would wait until the stored value is loaded: that was half of the cost of
 * recording. The register is rax whatever the function returns: files need not agree on the result type, and in C they
 * do not always.
 *
 * Code without a recorder neither takes nor returns the cursor. Before a call of such code the cursor is written to the
 * thread's variable, and after the call it is read from there (cursor.c). */
#include "slicer/instrument/model.h"

#include <llvm-c/Comdat.h>
#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

static const LLVMAttributeIndex self = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;

static unsigned kind_of(const char *attribute)
{
    return LLVMGetEnumAttributeKindForName(attribute, strlen(attribute));
}

/* ---- Types ---- */

/* In one register of its own, or two: LLVM's code for a C function then has room for one more in rax. */
static bool is_simple(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMPointerTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
        return true;
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type) <= 64;
    default:
        return false;
    }
}

static bool is_returned_in_registers(LLVMTypeRef type)
{
    LLVMTypeRef parts[2];

    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMX86_FP80TypeKind:
        return true;
    case LLVMVectorTypeKind:
        return LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMFloatTypeKind && LLVMGetVectorSize(type) <= 4;
    case LLVMStructTypeKind:
        if (LLVMCountStructElementTypes(type) != 2)
            return false;
        LLVMGetStructElementTypes(type, parts);
        return is_simple(parts[0]) && is_simple(parts[1]);
    default:
        return is_simple(type);
    }
}

static LLVMTypeRef returned(const struct emitter *e, LLVMTypeRef type)
{
    LLVMTypeRef parts[2] = {e->pointer, type};

    return type == e->void_type ? e->pointer : LLVMStructTypeInContext(e->context, parts, 2, false);
}

/* NULL where memory is short. */
static LLVMTypeRef cursor_abi_type(const struct emitter *e, LLVMTypeRef type)
{
    unsigned n = LLVMCountParamTypes(type);
    LLVMTypeRef *types = calloc(n + 1, sizeof(LLVMTypeRef)), result;

    if (!types)
        return NULL;
    LLVMGetParamTypes(type, types);
    types[n] = e->pointer;
    result = LLVMFunctionType(returned(e, LLVMGetReturnType(type)), types, n + 1, false);
    free(types);
    return result;
}

static bool is_usual(unsigned convention)
{
    return convention == LLVMCCallConv || convention == LLVMFastCallConv || convention == LLVMColdCallConv;
}

/* Code that runs before the function's own takes r10 for itself. */
static bool has_other_entry(LLVMValueRef function)
{
    return LLVMGetStringAttributeAtIndex(function, self, "fentry-call", strlen("fentry-call")) ||
           LLVMGetStringAttributeAtIndex(function, self, "split-stack", strlen("split-stack"));
}

bool etch_cursor_abi_allows(LLVMValueRef function)
{
    static const char *const others[] = {"nest", "swiftself", "swifterror", "swiftasync", "inalloca", "preallocated"};
    LLVMTypeRef type = LLVMGlobalGetValueType(function);

    if (has_other_entry(function) || LLVMIsFunctionVarArg(type) || !is_usual(LLVMGetFunctionCallConv(function)) ||
        etch_has_attribute(function, "returns_twice") || !is_returned_in_registers(LLVMGetReturnType(type)))
        return false;
    for (unsigned i = 1; i <= LLVMCountParams(function); i++)
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
            if (LLVMGetEnumAttributeAtIndex(function, i, kind_of(others[k])))
                return false;
    return true;
}

bool etch_can_pass_by(LLVMTypeRef type)
{
    LLVMTypeRef result = LLVMGetReturnType(type);

    return !LLVMIsFunctionVarArg(type) && (LLVMGetTypeKind(result) == LLVMVoidTypeKind || is_simple(result));
}

static bool is_by_value(LLVMValueRef of, unsigned argument)
{
    return LLVMIsAFunction(of) ? LLVMGetEnumAttributeAtIndex(of, argument, kind_of("byval")) != NULL
                               : LLVMGetCallSiteEnumAttribute(of, argument, kind_of("byval")) != NULL;
}

bool etch_fits_registers(LLVMTypeRef type, LLVMValueRef function_or_call)
{
    unsigned n = LLVMCountParamTypes(type), general = 0, vector = 0;
    LLVMTypeRef *types = calloc(n + 1, sizeof(LLVMTypeRef));
    bool fits = types && !LLVMIsFunctionVarArg(type) && is_returned_in_registers(LLVMGetReturnType(type));

    if (types)
        LLVMGetParamTypes(type, types);
    for (unsigned i = 0; i < n && fits; i++) {
        LLVMTypeKind kind = LLVMGetTypeKind(types[i]);

        fits = is_simple(types[i]) && !is_by_value(function_or_call, i + 1);
        general += kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind;
        vector += kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
    }
    free(types);
    return fits && general <= 6 && vector <= 8;
}

/* ---- A function that takes and returns the cursor ---- */

/* Attributes of the result, and `returned` of an argument, are not true any more. */
static bool is_kept(LLVMAttributeRef attribute)
{
    return !LLVMIsEnumAttribute(attribute) || (LLVMGetEnumAttributeKind(attribute) != kind_of("returned"));
}

static bool is_sret(LLVMAttributeRef attribute)
{
    return LLVMIsTypeAttribute(attribute) && LLVMGetEnumAttributeKind(attribute) == kind_of("sret");
}

static void copy_kept(LLVMValueRef from, LLVMValueRef to, LLVMAttributeIndex index, bool call)
{
    unsigned n = call ? LLVMGetCallSiteAttributeCount(from, index) : LLVMGetAttributeCountAtIndex(from, index);
    LLVMAttributeRef *all = calloc(n + 1, sizeof(LLVMAttributeRef));

    if (!all)
        return;
    if (call)
        LLVMGetCallSiteAttributes(from, index, all);
    else
        LLVMGetAttributesAtIndex(from, index, all);
    for (unsigned i = 0; i < n; i++) {
        if (!is_kept(all[i]) || is_sret(all[i]))
            continue;
        if (call)
            LLVMAddCallSiteAttribute(to, index, all[i]);
        else
            LLVMAddAttributeAtIndex(to, index, all[i]);
    }
    free(all);
}

static LLVMAttributeRef nest(const struct emitter *e)
{
    return LLVMCreateEnumAttribute(e->context, kind_of("nest"), 0);
}

static void copy_metadata(LLVMValueRef from, LLVMValueRef to)
{
    size_t n = 0;
    LLVMValueMetadataEntry *all = LLVMGlobalCopyAllMetadata(from, &n);

    for (unsigned i = 0; i < n; i++)
        LLVMGlobalSetMetadata(to, LLVMValueMetadataEntriesGetKind(all, i), LLVMValueMetadataEntriesGetMetadata(all, i));
    LLVMDisposeValueMetadataEntries(all);
    LLVMGlobalClearMetadata(from);
}

/* Addresses of labels are those of a function. */
static void move_label(LLVMBasicBlockRef block, LLVMValueRef to)
{
    for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);

        if (!LLVMIsABlockAddress(user) || LLVMGetOperand(user, 0) == to)
            continue;
        LLVMReplaceAllUsesWith(user, LLVMBlockAddress(to, block));
        return;
    }
}

static void move_blocks(LLVMValueRef from, LLVMValueRef to)
{
    LLVMBasicBlockRef block, next;

    for (block = LLVMGetFirstBasicBlock(from); block; block = next) {
        next = LLVMGetNextBasicBlock(block);
        LLVMRemoveBasicBlockFromParent(block);
        LLVMAppendExistingBasicBlock(to, block);
        move_label(block, to);
    }
}

void etch_move_code(LLVMValueRef from, LLVMValueRef to)
{
    if (LLVMGetSection(from) && LLVMGetSection(from)[0])
        LLVMSetSection(to, LLVMGetSection(from));
    if (LLVMHasPersonalityFn(from))
        LLVMSetPersonalityFn(to, LLVMGetPersonalityFn(from));
    move_blocks(from, to);
    copy_metadata(from, to);
}

LLVMValueRef etch_cursor_abi_apply(struct emitter *e, LLVMValueRef function, const char *name)
{
    LLVMTypeRef type = cursor_abi_type(e, LLVMGlobalGetValueType(function));
    unsigned n = LLVMCountParams(function);
    LLVMValueRef body = type ? LLVMAddFunction(e->module, name, type) : NULL;

    if (!body)
        return NULL;
    LLVMSetFunctionCallConv(body, LLVMGetFunctionCallConv(function));
    LLVMSetLinkage(body, LLVMGetLinkage(function));
    LLVMSetVisibility(body, LLVMGetVisibility(function));
    LLVMSetUnnamedAddress(body, LLVMGetUnnamedAddress(function));
    LLVMSetAlignment(body, LLVMGetAlignment(function));
    if (LLVMGetComdat(function))
        LLVMSetComdat(body, LLVMGetComdat(function));
    copy_kept(function, body, self, false);
    for (unsigned i = 1; i <= n; i++)
        copy_kept(function, body, i, false);
    LLVMAddAttributeAtIndex(body, n + 1, nest(e));
    etch_move_code(function, body);
    for (unsigned i = 0; i < n; i++)
        LLVMReplaceAllUsesWith(LLVMGetParam(function, i), LLVMGetParam(body, i));
    return body;
}

bool etch_has_cursor_abi(LLVMValueRef function)
{
    unsigned n = LLVMCountParams(function);

    return n && LLVMGetEnumAttributeAtIndex(function, n, kind_of("nest"));
}

/* ---- Returns ---- */

static bool is_cursor_call(const struct emitter *e, LLVMValueRef value)
{
    return etch_pointers_get(&e->cursor_calls, value) != ETCH_NONE;
}

static void convert_return(struct emitter *e, LLVMValueRef old, LLVMTypeRef type)
{
    LLVMValueRef value = LLVMGetNumOperands(old) ? LLVMGetOperand(old, 0) : NULL, new;
    LLVMMetadataRef place = LLVMInstructionGetDebugLoc(old);

    if (value && is_cursor_call(e, value))
        return;
    LLVMPositionBuilderBefore(e->builder, old);
    LLVMSetCurrentDebugLocation2(e->builder, place);
    value = value ? LLVMBuildInsertValue(e->builder, LLVMGetPoison(type), value, 1, "") : LLVMConstNull(type);
    new = LLVMBuildRet(e->builder, value);
    LLVMInstructionSetDebugLoc(new, place);
    LLVMInstructionEraseFromParent(old);
}

void etch_cursor_abi_returns(struct emitter *e, LLVMValueRef body)
{
    LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(body));

    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(body); b; b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(b);

        if (end && LLVMIsAReturnInst(end))
            convert_return(e, end, type);
    }
}

/* ---- Calls ---- */

/* With nothing behind it but a return of the same kind, it can still become a jump. */
static bool stays_tail(LLVMValueRef call, LLVMTypeRef type)
{
    LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));

    return etch_is_tail_call(call) && etch_has_cursor_abi(function) &&
           LLVMGetReturnType(type) == LLVMGetReturnType(LLVMGlobalGetValueType(function));
}

static LLVMValueRef build_same(struct emitter *e, LLVMValueRef call, LLVMTypeRef type, LLVMValueRef callee,
                               LLVMBasicBlockRef next)
{
    unsigned n = LLVMGetNumArgOperands(call), bundles = LLVMGetNumOperandBundles(call);
    LLVMValueRef *arguments = calloc(n + 1, sizeof(LLVMValueRef)), new = NULL;
    LLVMOperandBundleRef *all = calloc(bundles + 1, sizeof(LLVMOperandBundleRef));

    if (arguments && all) {
        for (unsigned i = 0; i < n; i++)
            arguments[i] = LLVMGetOperand(call, i);
        arguments[n] = LLVMConstNull(e->pointer); /* cursor.c fills it in when all code is there */
        for (unsigned i = 0; i < bundles; i++)
            all[i] = LLVMGetOperandBundleAtIndex(call, i);
        new = next ? LLVMBuildInvokeWithOperandBundles(e->builder, type, callee, arguments, n + 1, next,
                                                       LLVMGetUnwindDest(call), all, bundles, "")
                   : LLVMBuildCallWithOperandBundles(e->builder, type, callee, arguments, n + 1, all, bundles, "");
        for (unsigned i = 0; i < bundles; i++)
            LLVMDisposeOperandBundle(all[i]);
        copy_kept(call, new, self, true);
        for (unsigned i = 1; i <= n; i++)
            copy_kept(call, new, i, true);
        LLVMAddCallSiteAttribute(new, n + 1, nest(e));
        LLVMSetInstructionCallConv(new, LLVMGetInstructionCallConv(call));
        LLVMInstructionSetDebugLoc(new, LLVMInstructionGetDebugLoc(call));
    }
    free(arguments);
    free(all);
    return new;
}

/* Was it a call of recorded code? In memory meanwhile: registers that a call leaves alone are dear. */
static LLVMValueRef recall(struct emitter *e)
{
    LLVMValueRef distance = LLVMBuildLoad2(e->builder, e->quad, e->passed, "");

    LLVMSetVolatile(distance, true);
    return LLVMBuildICmp(e->builder, LLVMIntNE, distance, LLVMConstNull(e->quad), "");
}

/* The function's own result, after a call of code that may be recorded. `is` says whether it is; if not, the result is
 * in rax. */
static LLVMValueRef result_of(struct emitter *e, LLVMValueRef call, LLVMTypeRef type, LLVMValueRef is)
{
    LLVMValueRef value = LLVMBuildExtractValue(e->builder, call, 1, ""), plain;
    LLVMTypeKind kind = LLVMGetTypeKind(type);

    if (!is || (kind != LLVMIntegerTypeKind && kind != LLVMPointerTypeKind))
        return value;
    plain = LLVMBuildExtractValue(e->builder, call, 0, "");
    if (kind == LLVMIntegerTypeKind)
        plain = LLVMBuildPtrToInt(e->builder, plain, type, "");
    return LLVMBuildSelect(e->builder, is, value, plain, "");
}

/* The normal way of an invoke gets a block of its own, where what it returned is taken. */
static LLVMBasicBlockRef make_way(struct emitter *e, LLVMValueRef call)
{
    LLVMBasicBlockRef to = LLVMGetNormalDest(call), between = LLVMInsertBasicBlockInContext(e->context, to, "");

    etch_redirect_phis(e, NULL, to, LLVMGetInstructionParent(call), between);
    etch_emit_at_end(e, between);
    LLVMBuildBr(e->builder, to);
    return between;
}

static void move_to(struct emitter *e, LLVMValueRef instruction, LLVMBasicBlockRef block)
{
    LLVMInstructionRemoveFromParent(instruction);
    LLVMPositionBuilderAtEnd(e->builder, block);
    LLVMInsertIntoBuilder(e->builder, instruction);
}

/* If the call takes the cursor and returns it with the result, nothing is left to do after the call, and the call can
 * stay a jump. Some programs go from function to function in this way without end. */
bool etch_cursor_abi_tail(struct emitter *e, LLVMValueRef call, LLVMValueRef callee, LLVMValueRef is)
{
    LLVMTypeRef type = cursor_abi_type(e, LLVMGetCalledFunctionType(call));
    LLVMBasicBlockRef block = LLVMGetInstructionParent(call), jump, plain;
    LLVMValueRef end = LLVMGetNextInstruction(call), function = LLVMGetBasicBlockParent(block), new;

    if (!type)
        return false;
    jump = LLVMAppendBasicBlockInContext(e->context, function, "");
    plain = LLVMAppendBasicBlockInContext(e->context, function, "");
    etch_emit_at_end(e, jump);
    new = build_same(e, call, type, callee, NULL);
    if (!new || !etch_pointers_set(&e->cursor_calls, new, 0))
        return false;
    LLVMSetTailCallKind(new, LLVMTailCallKindTail);
    LLVMInstructionSetDebugLoc(LLVMBuildRet(e->builder, new), LLVMInstructionGetDebugLoc(end));
    move_to(e, call, plain);
    move_to(e, end, plain);
    etch_emit_at_end(e, block);
    LLVMBuildCondBr(e->builder, is, jump, plain);
    return true;
}

bool etch_can_stay_tail(const struct emitter *e, LLVMValueRef call)
{
    LLVMTypeRef type = cursor_abi_type(e, LLVMGetCalledFunctionType(call));

    return type && stays_tail(call, type);
}

/* Behind the new call, where the builder stands. */
static bool take_result(struct emitter *e, LLVMValueRef call, LLVMValueRef new, bool perhaps)
{
    LLVMTypeRef result = LLVMGetReturnType(LLVMGetCalledFunctionType(call));
    LLVMValueRef is = NULL;

    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    if (perhaps && !etch_array_push(&e->is, (is = recall(e))))
        return false;
    if (result != e->void_type)
        LLVMReplaceAllUsesWith(call, result_of(e, new, result, is));
    return true;
}

static void return_as_it_is(struct emitter *e, LLVMValueRef end, LLVMValueRef call)
{
    LLVMPositionBuilderBefore(e->builder, end);
    LLVMInstructionSetDebugLoc(LLVMBuildRet(e->builder, call), LLVMInstructionGetDebugLoc(end));
    LLVMInstructionEraseFromParent(end);
}

LLVMValueRef etch_cursor_abi_call(struct emitter *e, LLVMValueRef call, LLVMValueRef callee, LLVMValueRef distance)
{
    LLVMTypeRef type = cursor_abi_type(e, LLVMGetCalledFunctionType(call));
    LLVMBasicBlockRef next = LLVMIsAInvokeInst(call) ? make_way(e, call) : NULL;
    bool tail = type && !next && !distance && stays_tail(call, type);
    LLVMValueRef new, end = LLVMGetNextInstruction(call);

    LLVMPositionBuilderBefore(e->builder, call);
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    if (distance)
        LLVMSetVolatile(LLVMBuildStore(e->builder, distance, e->passed), true);
    new = type ? build_same(e, call, type, callee, next) : NULL;
    if (!new || !etch_pointers_set(&e->cursor_calls, new, distance ? (uint32_t)e->is.n + 1 : 0))
        return NULL;
    if (!next)
        LLVMSetTailCallKind(new, distance ? LLVMTailCallKindNone : LLVMGetTailCallKind(call));
    else
        LLVMPositionBuilderBeforeInstrAndDbgRecords(e->builder, LLVMGetFirstInstruction(next));
    if (tail)
        return_as_it_is(e, end, new);
    else if (!take_result(e, call, new, distance != NULL))
        return NULL;
    LLVMInstructionEraseFromParent(call);
    return new;
}
