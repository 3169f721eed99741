/* SPDX-License-Identifier: MIT */
/* Which functions of a module get a recorder. */
#include "slicer/instrument/recorded.h"

#include <llvm-c/Comdat.h>
#include <llvm-c/DebugInfo.h>
#include <string.h>

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool matches_file(const char *file, const char *wanted)
{
    size_t n = strlen(file), k = strlen(wanted);

    return n >= k && strcmp(file + n - k, wanted) == 0 && (n == k || file[n - k - 1] == '/');
}

static bool is_only_called_by_name(LLVMValueRef function)
{
    for (LLVMUseRef u = LLVMGetFirstUse(function); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);

        if ((!LLVMIsACallInst(user) && !LLVMIsAInvokeInst(user)) || LLVMGetCalledValue(user) != function)
            return false;
        for (unsigned i = 0; i + 1 < (unsigned)LLVMGetNumOperands(user); i++)
            if (LLVMGetOperand(user, i) == function)
                return false;
    }
    return true;
}

/* Could this be a signal handler? Handlers get a recorder if any function does: without one, the functions that they
 * call would seem to be called by the interrupted code. */
static bool may_handle_signals(LLVMValueRef function)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(function), types[3];
    unsigned n = LLVMCountParamTypes(type);

    if (LLVMIsFunctionVarArg(type) || (n != 1 && n != 3) || is_only_called_by_name(function) ||
        LLVMGetTypeKind(LLVMGetReturnType(type)) != LLVMVoidTypeKind)
        return false;
    LLVMGetParamTypes(type, types);
    return LLVMGetTypeKind(types[0]) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(types[0]) == 32 &&
           (n == 1 ||
            (LLVMGetTypeKind(types[1]) == LLVMPointerTypeKind && LLVMGetTypeKind(types[2]) == LLVMPointerTypeKind));
}

static bool is_wanted(const struct instrument *in, LLVMValueRef function)
{
    LLVMMetadataRef about = LLVMGetSubprogram(function);
    unsigned n = 0;
    const char *file = "";

    if (!in->options->n_only && !in->options->n_scopes)
        return true;
    if (about && LLVMDIScopeGetFile(about))
        file = LLVMDIFileGetFilename(LLVMDIScopeGetFile(about), &n);
    for (size_t i = 0; i < in->options->n_only; i++) {
        const char *only = in->options->only[i];

        if (strcmp(etch_value_name(function), only) == 0 || (strchr(only, '.') && n && matches_file(file, only)))
            return true;
    }
    return etch_has_scope(function, in->options) || may_handle_signals(function);
}

/* Instructions that cannot be in two functions, or that the recorder does not support. */
struct contents {
    bool unsuited, own_entry, must_tail;
};

/* The lab keeps a stack of callers to show it. A caller may be the function's own entry there. */
static bool is_for_lab(LLVMValueRef call)
{
    LLVMUseRef use = LLVMGetFirstUse(call);
    LLVMValueRef user = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;

    return user && LLVMIsACallInst(user) && LLVMIsAFunction(LLVMGetCalledValue(user)) &&
           strcmp(etch_value_name(LLVMGetCalledValue(user)), "__tsan_func_entry") == 0;
}

static struct contents look_into(const struct instrument *in, LLVMValueRef function)
{
    static const char *const frame[] = {"llvm.returnaddress",   "llvm.addressofreturnaddress.p0",
                                        "llvm.frameaddress.p0", "llvm.sponentry.p0",
                                        "llvm.va_start",        "llvm.va_start.p0"};
    struct contents c = {.own_entry = LLVMIsFunctionVarArg(LLVMGlobalGetValueType(function))};
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);

    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
            LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
            LLVMValueRef callee = opcode == LLVMCall ? LLVMGetCalledValue(i) : NULL;

            c.unsuited |=
                opcode == LLVMCallBr || opcode == LLVMCatchSwitch || opcode == LLVMCleanupPad || opcode == LLVMCatchPad;
            c.must_tail |= opcode == LLVMCall && LLVMGetTailCallKind(i) == LLVMTailCallKindMustTail;
            if (callee && LLVMIsAFunction(callee) && !(in->options->lab && is_for_lab(i)))
                c.own_entry |= is_one_of(etch_value_name(callee), frame, sizeof(frame) / sizeof(frame[0]));
        }
    return c;
}

static bool is_defined_here(LLVMValueRef function)
{
    return !LLVMIsDeclaration(function) && LLVMGetLinkage(function) != LLVMAvailableExternallyLinkage;
}

/* The linker, or the loader, may take another definition than this one. */
static bool is_replaceable(const struct instrument *in, LLVMValueRef function)
{
    switch (LLVMGetLinkage(function)) {
    case LLVMWeakAnyLinkage:
    case LLVMLinkOnceAnyLinkage:
    case LLVMExternalWeakLinkage:
        return true;
    case LLVMInternalLinkage:
    case LLVMPrivateLinkage:
        return false;
    default:
        return in->emitter.shared && LLVMGetVisibility(function) == LLVMDefaultVisibility;
    }
}

/* Do calls within the file lead to this definition, even if other modules use another one? The rule is clang's. */
static bool is_called_directly(const struct instrument *in, LLVMValueRef function)
{
    return !is_replaceable(in, function) ||
           (in->options->local && LLVMGetLinkage(function) == LLVMExternalLinkage && !LLVMGetComdat(function));
}

static bool choose_function(struct instrument *in, LLVMValueRef function)
{
    struct recorded r = {.body = function};
    struct contents c;

    if (!is_defined_here(function))
        return true;
    c = look_into(in, function);
    if (!is_wanted(in, function) || c.unsuited || c.must_tail || etch_has_attribute(function, "naked") ||
        etch_has_attribute(function, "presplitcoroutine") || etch_value_name(function)[0] == 1) {
        in->count.skipped++;
        return true;
    }
    r.before = function;
    r.enters = c.own_entry || !etch_cursor_abi_allows(function);
    r.replaceable = is_replaceable(in, function);
    r.direct = is_called_directly(in, function);
    return etch_array_push(&in->all, r);
}

bool etch_recorded_choose(struct instrument *in)
{
    LLVMValueRef f = LLVMGetFirstFunction(in->emitter.module);

    for (; f; f = LLVMGetNextFunction(f))
        if (!choose_function(in, f))
            return false;
    return true;
}
