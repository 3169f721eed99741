/* SPDX-License-Identifier: MIT */
/* The calls in a function with a recorder, and in its plain copy: where they lead. */
#include "slicer/instrument/recorded.h"

#include <stdio.h>
#include <string.h>

static bool begins_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

enum call_kind etch_call_classify(void *context, LLVMValueRef call)
{
    struct instrument *in = context;
    LLVMValueRef callee = LLVMGetCalledValue(call);
    uint32_t known;

    if (LLVMIsAInlineAsm(callee))
        return CALL_PLAIN;
    if (!LLVMIsAFunction(callee))
        return CALL_OUTSIDE;
    known = etch_pointers_get(&in->index, callee);
    if (known != ETCH_NONE && in->all.v[known].body == callee && in->all.v[known].direct && !in->all.v[known].enters)
        return CALL_KNOWN;
    if (etch_pointers_get(&in->stubs, callee) != ETCH_NONE)
        return CALL_STUBBED;
    if (known == ETCH_NONE && LLVMIsDeclaration(callee) &&
        (etch_calls_nobody(etch_value_name(callee)) ||
         (in->options->lab && begins_with(etch_value_name(callee), "__tsan_"))))
        return CALL_PLAIN;
    return CALL_OUTSIDE;
}

static void set_callee(LLVMValueRef call, LLVMValueRef callee)
{
    LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, callee);
}

/* The function of this module that a call is sure to lead to; NULL: none. */
static const struct recorded *callee_of(struct instrument *in, LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    uint32_t known = LLVMIsAFunction(callee) ? etch_pointers_get(&in->index, callee) : ETCH_NONE;
    const struct recorded *r = known == ETCH_NONE ? NULL : &in->all.v[known];

    return r && r->direct && LLVMGetCalledFunctionType(call) == LLVMGlobalGetValueType(callee) ? r : NULL;
}

static bool hand_over(struct instrument *in, LLVMValueRef call, LLVMValueRef to, bool recorded)
{
    if (recorded)
        return etch_cursor_abi_call(&in->emitter, call, to, NULL) != NULL;
    set_callee(call, to);
    return true;
}

/* The guard that the call goes to instead of a replaceable function; NULL: the call goes to the function. */
static LLVMValueRef guard_of(struct instrument *in, LLVMValueRef call, bool recorded)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    uint32_t known = LLVMIsAFunction(callee) ? etch_pointers_get(&in->index, callee) : ETCH_NONE;

    if (known == ETCH_NONE || LLVMGetCalledFunctionType(call) != LLVMGlobalGetValueType(callee))
        return NULL;
    return recorded ? in->all.v[known].guard : in->all.v[known].plain_guard;
}

/* A call of another file's function. If that function has a recorder, its file defines NAME.etch and NAME.etch.plain;
 * otherwise our weak stubs do. Functions that synchronise are called directly, not by a stub, because the collector
 * watches their callers. */
static bool call_outside(struct instrument *in, LLVMValueRef call, bool recorded)
{
    LLVMValueRef callee = LLVMGetCalledValue(call), inner;
    LLVMTypeRef type;
    char name[512];
    const char *plain;

    if ((inner = guard_of(in, call, recorded)))
        return hand_over(in, call, inner, recorded);
    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || etch_call_classify(in, call) != CALL_OUTSIDE)
        return true;
    plain = etch_value_name(callee);
    type = LLVMGlobalGetValueType(callee);
    if (LLVMIsFunctionVarArg(type) || etch_call_returns_twice(call) || etch_call_forks(call) ||
        (recorded && (etch_stamps_of(plain, type) || !etch_fits_registers(type, call))) || begins_with(plain, "__") ||
        !etch_is_simple_name(plain) || LLVMGetLinkage(callee) != LLVMExternalLinkage ||
        LLVMGetCalledFunctionType(call) != type || LLVMGetFunctionCallConv(callee) != LLVMCCallConv)
        return true;
    snprintf(name, sizeof(name), "%s%s", plain, recorded ? ETCH_SOFT_CODE_SUFFIX : ETCH_SOFT_PLAIN_SUFFIX);
    inner = LLVMGetNamedFunction(in->emitter.module, name);
    if (!inner) {
        inner = LLVMAddFunction(in->emitter.module, name, type);
        LLVMSetVisibility(inner, LLVMHiddenVisibility);
        if (!etch_emit_stub(&in->emitter, name, plain, recorded) ||
            (recorded && !etch_pointers_set(&in->stubs, inner, 1)))
            return false;
    }
    return hand_over(in, call, inner, recorded);
}

static void stamp_before(struct emitter *e, LLVMValueRef next)
{
    etch_emit_before(e, next);
    LLVMBuildCall2(e->builder, e->stamp_type, e->stamp, NULL, 0, "");
}

static void stamp_if_held(struct emitter *e, LLVMValueRef call)
{
    LLVMValueRef lock = LLVMGetOperand(call, 0);

    etch_emit_before(e, call);
    LLVMBuildCall2(e->builder, e->leave_type, e->stamp_held, &lock, 1, "");
}

/* A call that did not wait needs a single stamp: what is before it and what is after it are bounded by the same time.
 */
static void stamp_around(struct instrument *in, LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    unsigned stamps;

    if (!LLVMIsACallInst(call) || !LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) ||
        LLVMGetTailCallKind(call) == LLVMTailCallKindMustTail)
        return;
    stamps = etch_stamps_of(etch_value_name(callee), LLVMGlobalGetValueType(callee));
    if (stamps & STAMP_AFTER)
        stamp_before(&in->emitter, LLVMGetNextInstruction(call));
    if ((stamps & STAMP_IF_HELD) && LLVMGetNumArgOperands(call) &&
        LLVMTypeOf(LLVMGetOperand(call, 0)) == in->emitter.pointer)
        stamp_if_held(&in->emitter, call);
    else if (stamps & (STAMP_BEFORE | STAMP_IF_HELD))
        stamp_before(&in->emitter, call);
}

static void weaken_call(LLVMValueRef call)
{
    static const char *const gone[] = {"memory", "willreturn", "speculatable"};

    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        LLVMRemoveCallSiteEnumAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                        LLVMGetEnumAttributeKindForName(gone[i], strlen(gone[i])));
}

static bool collect_calls(LLVMValueRef function, values *calls)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);

    calls->n = 0;
    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            if ((LLVMIsACallInst(i) || LLVMIsAInvokeInst(i)) && !etch_array_push(calls, i))
                return false;
    return true;
}

bool etch_calls_prepare(struct instrument *in, LLVMValueRef function, values *calls)
{
    if (!collect_calls(function, calls))
        return false;
    for (size_t i = 0; i < calls->n; i++) {
        LLVMValueRef call = calls->v[i];
        const struct recorded *r;

        if (LLVMIsAInlineAsm(LLVMGetCalledValue(call)) || LLVMIsAIntrinsicInst(call))
            continue;
        stamp_around(in, call);
        weaken_call(call);
        r = callee_of(in, call);
        if (r && r->enters)
            set_callee(call, r->body);
        else if (!(r ? etch_cursor_abi_call(&in->emitter, call, r->body, NULL) != NULL
                   : LLVMIsAFunction(LLVMGetCalledValue(call)) ? call_outside(in, call, true)
                                                               : etch_emit_passing(&in->emitter, call)))
            return false;
    }
    return true;
}

bool etch_calls_prepare_plain(struct instrument *in, LLVMValueRef function, values *calls)
{
    if (!collect_calls(function, calls))
        return false;
    for (size_t i = 0; i < calls->n; i++) {
        const struct recorded *r;

        if (LLVMIsAInlineAsm(LLVMGetCalledValue(calls->v[i])) || LLVMIsAIntrinsicInst(calls->v[i]))
            continue;
        r = callee_of(in, calls->v[i]);
        if (r && r->plain)
            set_callee(calls->v[i], r->plain);
        else if (!call_outside(in, calls->v[i], false))
            return false;
    }
    return true;
}
