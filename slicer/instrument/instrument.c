/* SPDX-License-Identifier: MIT */
/* The software recorder in a module: which functions get it, what their calls lead to, and the entries from outside.
 * See instrument.h. */
#include "slicer/instrument.h"
#include "slicer/instrument/model.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Comdat.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One function that gets a recorder. */
struct recorded {
    LLVMValueRef body;
    LLVMValueRef before; /* the function as it was, without code now where the body carries; else the body */
    LLVMValueRef entry;  /* what others see; NULL: nobody does */
    LLVMValueRef teller; /* tells that it was entered from outside, and calls the body */
    LLVMValueRef plain;  /* the same without a recorder; NULL: there is none */
    LLVMValueRef guard;  /* leads to the body, unless another module replaced the function; NULL: there is none */
    LLVMValueRef plain_guard;
    LLVMValueRef here; /* the entry as this module has it, whoever replaced the function; NULL: there is no guard */
    bool enters;       /* the body tells itself that it was entered */
    bool replaceable;  /* another file or module may have a function that takes its place */
    bool direct;       /* calls from this module go to the body, or from plain code to the plain one */
};

struct instrument {
    struct emitter emitter;
    const struct etch_instrument_options *options;
    ETCH_ARRAY(struct recorded) all;
    struct etch_pointers index; /* body or entry -> number in `all` */
    struct etch_pointers stubs; /* what stands for functions of other files */
    struct etch_instrument_count count;
};

static const char *name_of(LLVMValueRef value)
{
    size_t n;

    return LLVMGetValueName2(value, &n);
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool begins_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

/* ---- Which functions ---- */

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

/* Could this be a signal handler? They have a recorder whenever anything has: only then is it seen that what they call
 * comes in the middle of other code. */
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

        if (strcmp(name_of(function), only) == 0 || (strchr(only, '.') && n && matches_file(file, only)))
            return true;
    }
    return etch_has_scope(function, in->options) || may_handle_signals(function);
}

/* What cannot stand in two functions, or is not for us. */
struct contents {
    bool unsuited, own_entry, must_tail;
};

static struct contents look_into(LLVMValueRef function)
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
            if (callee && LLVMIsAFunction(callee))
                c.own_entry |= is_one_of(name_of(callee), frame, sizeof(frame) / sizeof(frame[0]));
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

/* Do calls within the file lead to this definition, whatever others take for the function? As clang decides it. */
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
    c = look_into(function);
    if (!is_wanted(in, function) || c.unsuited || c.must_tail || etch_has_attribute(function, "naked") ||
        etch_has_attribute(function, "presplitcoroutine") || name_of(function)[0] == 1) {
        in->count.skipped++;
        return true;
    }
    r.before = function;
    r.enters = c.own_entry || !etch_can_carry(function);
    r.replaceable = is_replaceable(in, function);
    r.direct = is_called_directly(in, function);
    return etch_array_push(&in->all, r);
}

static bool choose(struct instrument *in)
{
    LLVMValueRef f = LLVMGetFirstFunction(in->emitter.module);

    for (; f; f = LLVMGetNextFunction(f))
        if (!choose_function(in, f))
            return false;
    return true;
}

/* ---- Copies without a recorder ---- */

static bool copy_plain(struct instrument *in)
{
    struct plain_copy *copies = calloc(in->all.n + 1, sizeof(*copies));
    values tables = {0};
    bool whole = copies != NULL, any = false;

    for (size_t i = 0; i < in->all.n && whole; i++) {
        copies[i].function = in->all.v[i].body;
        any |= copies[i].wanted = etch_can_copy(in->all.v[i].body, &tables);
    }
    if (any)
        whole = etch_copy_plain(in->emitter.module, copies, in->all.n, &tables);
    for (size_t i = 0; i < in->all.n && whole; i++)
        in->all.v[i].plain = copies[i].plain;
    etch_array_free(&tables);
    free(copies);
    return whole;
}

/* ---- Several symbols for one function ---- */

/* What optimisation found out about a function no longer holds, and lets calls vanish or merge. */
static void weaken(LLVMValueRef function)
{
    static const char *const gone[] = {"memory",       "willreturn", "nosync",     "nofree",      "mustprogress",
                                       "speculatable", "norecurse",  "nocallback", "alwaysinline"};

    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        LLVMRemoveEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                       LLVMGetEnumAttributeKindForName(gone[i], strlen(gone[i])));
}

static void set_flag(const struct emitter *e, LLVMValueRef function, const char *name)
{
    LLVMAddAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateEnumAttribute(e->context, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0));
}

/* The recording code calls from inline assembly, and walks frames, so these are made before anything else. That is what
 * code generation takes the last flag for: shrink-wrapping is off for it, and nothing else reads it there. */
static void prepare_frame(const struct emitter *e, LLVMValueRef function)
{
    LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;

    set_flag(e, function, "noredzone");
    set_flag(e, function, "sanitize_hwaddress");
    LLVMRemoveStringAttributeAtIndex(function, index, "frame-pointer", 13);
    LLVMAddAttributeAtIndex(function, index, LLVMCreateStringAttribute(e->context, "frame-pointer", 13, "all", 3));
}

static bool is_recorded(const struct instrument *in, LLVMValueRef function)
{
    return etch_pointers_get(&in->index, function) != ETCH_NONE;
}

/* By functions that have a recorder too, and in no other way. */
static bool is_only_called(const struct instrument *in, LLVMValueRef function)
{
    for (LLVMUseRef u = LLVMGetFirstUse(function); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);

        if ((!LLVMIsACallInst(user) && !LLVMIsAInvokeInst(user)) || LLVMGetCalledValue(user) != function ||
            LLVMGetCalledFunctionType(user) != LLVMGlobalGetValueType(function) ||
            !is_recorded(in, LLVMGetBasicBlockParent(LLVMGetInstructionParent(user))))
            return false;
        for (unsigned i = 0; i + 1 < (unsigned)LLVMGetNumOperands(user); i++)
            if (LLVMGetOperand(user, i) == function)
                return false;
    }
    return true;
}

/* What tells, where the body does not itself; and the entry, which leads there or to the plain copy. */
static bool make_entry(struct instrument *in, struct recorded *r, const char *name)
{
    char *teller = NULL;

    r->teller = r->body;
    if (!r->enters) {
        if (asprintf(&teller, "%s" ETCH_SOFT_TELLER_SUFFIX, name) < 0)
            return false;
        r->teller = etch_emit_entry(&in->emitter, r->body, r->before, teller);
        free(teller);
        if (!r->teller)
            return false;
        LLVMSetLinkage(r->teller, LLVMInternalLinkage);
        if (LLVMGetComdat(r->body))
            LLVMSetComdat(r->teller, LLVMGetComdat(r->body));
    }
    r->entry = etch_emit_gate(&in->emitter, r->body, r->before, r->teller, r->plain, name);
    return r->entry != NULL;
}

/* Another name beside the function's own: seen by the program's other files where the function is, and they may call
 * it by that name. Those that do not see its definition (an extern template) have a weak stub of that name, which the
 * linker must not take for it. A comdat is what keeps several definitions apart, so that none needs to be weak. */
static void place_inner(struct instrument *in, LLVMValueRef inner, bool called, LLVMLinkage linkage, bool in_comdat)
{
    if (in_comdat)
        LLVMSetComdat(inner, called ? LLVMGetOrInsertComdat(in->emitter.module, name_of(inner)) : NULL);
    LLVMSetLinkage(inner, !called ? LLVMInternalLinkage : in_comdat ? LLVMExternalLinkage : linkage);
    if (called && linkage != LLVMInternalLinkage && linkage != LLVMPrivateLinkage)
        LLVMSetVisibility(inner, LLVMHiddenVisibility);
}

/* ---- Guards ---- */

/* In assembly between quotes, and in a name on the stack. */
static bool is_simple_name(const char *name)
{
    return strlen(name) <= 400 && !strpbrk(name, "\1\"\\@$");
}

static bool can_guard(const struct recorded *r)
{
    return r->replaceable && is_simple_name(name_of(r->before)) && LLVMGetFunctionCallConv(r->before) == LLVMCCallConv;
}

static bool can_guard_plain(const struct recorded *r)
{
    return r->plain && can_guard(r) && !LLVMGetComdat(r->before);
}

/* Several files may have code for a comdat: that must be the same for all of them. */
static bool is_same_in_all_files(LLVMValueRef function)
{
    LLVMLinkage linkage = LLVMGetLinkage(function);

    return linkage == LLVMLinkOnceODRLinkage || linkage == LLVMWeakODRLinkage;
}

static bool can_guard_body(const struct instrument *in, const struct recorded *r)
{
    return can_guard(r) && !r->enters && etch_fits_registers(LLVMGlobalGetValueType(r->before), r->before) &&
           (!LLVMGetComdat(r->before) || (is_same_in_all_files(r->before) && etch_can_pass(&in->emitter, r->before)));
}

/* Other files call a comdat's guard only if they have it, too. */
static LLVMValueRef add_guard(struct instrument *in, struct recorded *r, const char *name, bool tells)
{
    char own[512];
    bool comdat = LLVMGetComdat(r->entry) != NULL;
    struct guard guard = {.name = own,
                          .function = name,
                          .code = name_of(tells ? r->body : r->plain),
                          .tells = tells,
                          .comdat = comdat,
                          .weak = !comdat && LLVMGetLinkage(r->entry) != LLVMExternalLinkage};
    LLVMValueRef function;

    snprintf(own, sizeof(own), "%s%s", name,
             comdat  ? ETCH_SOFT_GUARD_SUFFIX
             : tells ? ETCH_SOFT_CODE_SUFFIX
                     : ETCH_SOFT_PLAIN_SUFFIX);
    if (!etch_emit_guard(&in->emitter, &guard))
        return NULL;
    function = LLVMAddFunction(in->emitter.module, own, LLVMGlobalGetValueType(r->entry));
    LLVMSetVisibility(function, LLVMHiddenVisibility);
    return function;
}

/* An instruction that has the value as an operand, though not as what it calls, and which; NULL: there is none. */
static LLVMValueRef next_user(LLVMValueRef value, unsigned *operand)
{
    for (LLVMUseRef u = LLVMGetFirstUse(value); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        unsigned n = LLVMIsAInstruction(user) ? (unsigned)LLVMGetNumOperands(user) : 0;

        n -= n && (LLVMIsACallInst(user) || LLVMIsAInvokeInst(user));
        for (*operand = 0; *operand < n; ++*operand)
            if (LLVMGetOperand(user, *operand) == value)
                return user;
    }
    return NULL;
}

/* With -fno-semantic-interposition code of the file means this definition where it takes the function's address, too.
 * Tables do not. */
static void use_here(const struct recorded *r)
{
    LLVMValueRef user;
    unsigned operand;

    while (r->direct && (user = next_user(r->entry, &operand)))
        LLVMSetOperand(user, operand, r->here);
}

/* Guards compare with where this module has the function. */
static bool add_guards(struct instrument *in, struct recorded *r, const char *name, bool body, bool plain)
{
    char here[512];

    if (!LLVMGetComdat(r->entry)) {
        snprintf(here, sizeof(here), "%s" ETCH_SOFT_HERE_SUFFIX, name);
        r->here = LLVMAddAlias2(in->emitter.module, LLVMGlobalGetValueType(r->entry), 0, r->entry, here);
        LLVMSetLinkage(r->here, LLVMInternalLinkage);
        use_here(r);
    }
    if (plain && !(r->plain_guard = add_guard(in, r, name, false)))
        return false;
    return !body || ((r->guard = add_guard(in, r, name, true)) && etch_pointers_set(&in->stubs, r->guard, 1));
}

/* Behind a guard the code has another name than what other files call. */
static bool name_plain(const struct recorded *r, const char *name)
{
    char *plain = NULL;

    if (!can_guard_plain(r))
        return true;
    if (asprintf(&plain, "%s" ETCH_SOFT_GUARDED_PLAIN_SUFFIX, name) < 0)
        return false;
    LLVMSetValueName2(r->plain, plain, strlen(plain));
    free(plain);
    return true;
}

/* The body takes another name; its old one is what the rest of the program sees. */
static bool separate(struct instrument *in, struct recorded *r)
{
    char *name = strdup(name_of(r->body)), *inner = NULL;
    LLVMLinkage linkage = LLVMGetLinkage(r->body);
    bool local = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
    LLVMComdatRef comdat = LLVMGetComdat(r->body);
    bool guards = can_guard_body(in, r), guards_plain = can_guard_plain(r), whole;

    if (!name || !name_plain(r, name) ||
        asprintf(&inner, "%s%s", name, guards ? ETCH_SOFT_GUARDED_CODE_SUFFIX : ETCH_SOFT_CODE_SUFFIX) < 0) {
        free(name);
        return false;
    }
    LLVMSetValueName2(r->before, r->enters ? inner : "", r->enters ? strlen(inner) : 0);
    if (!r->enters)
        r->body = etch_carry(&in->emitter, r->before, inner);
    if (!r->body || ((!local || !is_only_called(in, r->before)) && !make_entry(in, r, name))) {
        free(name);
        free(inner);
        return false;
    }
    if (r->entry) {
        LLVMSetLinkage(r->entry, linkage);
        LLVMSetVisibility(r->entry, LLVMGetVisibility(r->body));
        LLVMSetUnnamedAddress(r->entry, LLVMGetUnnamedAddress(r->body));
        if (comdat)
            LLVMSetComdat(r->entry, comdat);
        etch_replace_function(r->before, r->entry);
    }
    if (r->plain)
        place_inner(in, r->plain, !r->replaceable, linkage, comdat != NULL);
    place_inner(in, r->body, (!r->replaceable && !r->enters) || (guards && comdat), linkage, comdat != NULL);
    whole = !(guards || guards_plain) || add_guards(in, r, name, guards, guards_plain);
    free(name);
    free(inner);
    return whole;
}

static bool separate_all(struct instrument *in)
{
    for (size_t i = 0; i < in->all.n; i++)
        if (!etch_pointers_set(&in->index, in->all.v[i].body, (uint32_t)i))
            return false;
    for (size_t i = 0; i < in->all.n; i++) {
        struct recorded *r = &in->all.v[i];

        weaken(r->body);
        if (!separate(in, r))
            return false;
        if (!etch_pointers_set(&in->index, r->body, (uint32_t)i) ||
            (r->entry && !etch_pointers_set(&in->index, r->entry, (uint32_t)i)))
            return false;
    }
    return true;
}

/* ---- Calls ---- */

static enum call_kind classify(void *context, LLVMValueRef call)
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
    if (known == ETCH_NONE && LLVMIsDeclaration(callee) && etch_calls_nobody(name_of(callee)))
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
        return etch_carry_call(&in->emitter, call, to, NULL) != NULL;
    set_callee(call, to);
    return true;
}

/* What the call comes to instead of a function that may be replaced; NULL: that function itself. */
static LLVMValueRef guard_of(struct instrument *in, LLVMValueRef call, bool recorded)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    uint32_t known = LLVMIsAFunction(callee) ? etch_pointers_get(&in->index, callee) : ETCH_NONE;

    if (known == ETCH_NONE || LLVMGetCalledFunctionType(call) != LLVMGlobalGetValueType(callee))
        return NULL;
    return recorded ? in->all.v[known].guard : in->all.v[known].plain_guard;
}

/* Of another file, perhaps with a recorder: that file then defines NAME.etch and NAME.etch.plain, and if not, we do,
 * weakly. What is watched as synchronisation is called from where the program has it, not from a stub. */
static bool call_outside(struct instrument *in, LLVMValueRef call, bool recorded)
{
    LLVMValueRef callee = LLVMGetCalledValue(call), inner;
    LLVMTypeRef type;
    char name[512];
    const char *plain;

    if ((inner = guard_of(in, call, recorded)))
        return hand_over(in, call, inner, recorded);
    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || classify(in, call) != CALL_OUTSIDE)
        return true;
    plain = name_of(callee);
    type = LLVMGlobalGetValueType(callee);
    if (LLVMIsFunctionVarArg(type) || etch_call_returns_twice(call) || etch_call_forks(call) ||
        (recorded && (etch_may_wait(plain, type) || !etch_fits_registers(type, call))) || begins_with(plain, "__") ||
        !is_simple_name(plain) || LLVMGetLinkage(callee) != LLVMExternalLinkage ||
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

static void stamp_around(struct instrument *in, LLVMValueRef call)
{
    struct emitter *e = &in->emitter;
    LLVMValueRef callee = LLVMGetCalledValue(call), next;

    if (!LLVMIsACallInst(call) || !LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) ||
        !etch_may_wait(name_of(callee), LLVMGlobalGetValueType(callee)) ||
        LLVMGetTailCallKind(call) == LLVMTailCallKindMustTail)
        return;
    next = LLVMGetNextInstruction(call);
    LLVMPositionBuilderBeforeInstrAndDbgRecords(e->builder, call);
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    LLVMBuildCall2(e->builder, e->stamp_type, e->stamp, NULL, 0, "");
    LLVMPositionBuilderBeforeInstrAndDbgRecords(e->builder, next);
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    LLVMBuildCall2(e->builder, e->stamp_type, e->stamp, NULL, 0, "");
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

static bool prepare_calls(struct instrument *in, LLVMValueRef function, values *calls)
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
        else if (!(r ? etch_carry_call(&in->emitter, call, r->body, NULL) != NULL
                   : LLVMIsAFunction(LLVMGetCalledValue(call)) ? call_outside(in, call, true)
                                                               : etch_emit_passing(&in->emitter, call)))
            return false;
    }
    return true;
}

/* The plain world stays plain: its direct calls go to plain copies, in other files too. */
static bool prepare_plain(struct instrument *in, LLVMValueRef function, values *calls)
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

/* ---- The module ---- */

static bool record_function(struct instrument *in, const struct recorded *r, values *calls)
{
    struct flow_graph graph = {0};
    bool whole;

    etch_split_switches(&in->emitter, r->body);
    etch_cursor_open(&in->emitter, r->body);
    whole = prepare_calls(in, r->body, calls);
    if (whole && !r->enters)
        etch_carry_returns(&in->emitter, r->body);
    whole = whole && etch_flow_graph_build(&graph, r->body, classify, in) && etch_ask_for_room(&graph);
    if (whole && (graph.calls || r->enters))
        prepare_frame(&in->emitter, r->body);
    whole = whole && etch_emit_function(&in->emitter, &graph, r->enters);
    in->count.functions++;
    in->count.nodes += graph.nodes.n;
    for (size_t i = 0; i < graph.nodes.n; i++)
        in->count.segments += graph.nodes.v[i].head;
    etch_flow_graph_release(&graph);
    return whole;
}

/* Makes registers of the slots (instrument_cursor.c); all other variables that could be are so already, and functions
 * that are not to be optimised are left alone. */
static void promote(LLVMModuleRef module)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, "function(mem2reg)", NULL, options);

    LLVMDisposePassBuilderOptions(options);
    if (error)
        LLVMConsumeError(error);
}

static bool is_unused(LLVMValueRef function)
{
    LLVMLinkage linkage = LLVMGetLinkage(function);

    return !LLVMGetFirstUse(function) && (linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage);
}

/* What is left of the function as it was; and of one that is known to this file only, the way in that nobody takes. The
 * entry speaks of the others by their names, so they go after it. */
static void drop_unused(struct recorded *r)
{
    if (r->before != r->body)
        LLVMDeleteFunction(r->before);
    if (!r->entry || !is_unused(r->entry))
        return;
    LLVMDeleteFunction(r->entry);
    if (r->teller != r->body)
        LLVMDeleteFunction(r->teller);
    if (r->plain && is_unused(r->plain))
        LLVMDeleteFunction(r->plain);
}

static int instrument_module(LLVMModuleRef module, const struct etch_instrument_options *options,
                             struct etch_instrument_count *count, struct etch_error *err)
{
    struct instrument in = {.options = options};
    values calls = {0};
    bool whole;

    etch_emitter_open(&in.emitter, module);
    whole = choose(&in) && copy_plain(&in) && separate_all(&in);
    for (size_t i = 0; i < in.all.n && whole; i++)
        whole = (!in.all.v[i].plain || prepare_plain(&in, in.all.v[i].plain, &calls)) &&
                record_function(&in, &in.all.v[i], &calls);
    for (size_t i = 0; i < in.all.n && whole; i++)
        drop_unused(&in.all.v[i]);
    if (whole)
        promote(module);
    etch_emitter_close(&in.emitter);
    etch_array_free(&calls);
    etch_array_free(&in.all);
    etch_pointers_release(&in.index);
    etch_pointers_release(&in.stubs);
    if (count)
        *count = in.count;
    return whole ? 0 : etch_error_set(err, "out of memory");
}

static int verify(LLVMModuleRef module, struct etch_error *err)
{
    char *message = NULL;
    int status = 0;

    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        status = etch_error_set(err, "the recorder made a module that LLVM refuses: %s", message);
    LLVMDisposeMessage(message);
    return status;
}

int etch_instrument(const char *from, const char *to, const struct etch_instrument_options *options,
                    struct etch_instrument_count *count, struct etch_error *err)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer = NULL;
    LLVMModuleRef module = NULL;
    char *message = NULL;
    int status = -1;

    if (LLVMCreateMemoryBufferWithContentsOfFile(from, &buffer, &message)) {
        etch_error_set(err, "cannot read %s: %s", from, message);
        LLVMDisposeMessage(message);
    } else if (LLVMParseBitcodeInContext2(context, buffer, &module)) {
        etch_error_set(err, "%s is not bitcode of this LLVM", from);
    } else if (instrument_module(module, options, count, err) == 0 && verify(module, err) == 0) {
        status = LLVMWriteBitcodeToFile(module, to) ? etch_error_set(err, "cannot write %s", to) : 0;
    }
    if (module)
        LLVMDisposeModule(module);
    if (buffer)
        LLVMDisposeMemoryBuffer(buffer);
    LLVMContextDispose(context);
    return status;
}
