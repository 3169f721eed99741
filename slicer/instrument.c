/* SPDX-License-Identifier: MIT */
/* The software recorder in a module: which functions get it, what their calls lead to, and the entries from outside.
 * See instrument.h. */
#include "slicer/instrument.h"
#include "slicer/instrument_model.h"

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
    bool enters;         /* the body tells itself that it was entered */
    bool direct;         /* calls from this module go to the body, or from plain code to the plain one */
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

/* The linker may take another definition than this one. */
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
    r.direct = !is_replaceable(in, function);
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

/* The body takes another name; its old one is what the rest of the program sees. */
static bool separate(struct instrument *in, struct recorded *r)
{
    char *name = strdup(name_of(r->body)), *inner = NULL;
    LLVMLinkage linkage = LLVMGetLinkage(r->body);
    bool local = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
    LLVMComdatRef comdat = LLVMGetComdat(r->body);

    if (!name || asprintf(&inner, "%s" ETCH_SOFT_CODE_SUFFIX, name) < 0) {
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
        place_inner(in, r->plain, r->direct, linkage, comdat != NULL);
    place_inner(in, r->body, r->direct && !r->enters, linkage, comdat != NULL);
    free(name);
    free(inner);
    return true;
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

/* Functions of libc that call nobody back, so that no segment need end before them. Where one does after all, because
 * the program has its own, the entry is recorded all the same and only its place in the segment is not. */
static bool is_harmless(const char *name)
{
    static const char *const heads[] = {"llvm.", "etch_soft_", "_Zn", "_Zd"};
    static const char *const names[] = {"malloc",
                                        "calloc",
                                        "realloc",
                                        "free",
                                        "aligned_alloc",
                                        "posix_memalign",
                                        "memcpy",
                                        "memmove",
                                        "memset",
                                        "memcmp",
                                        "bcmp",
                                        "memchr",
                                        "memrchr",
                                        "mempcpy",
                                        "memmem",
                                        "rawmemchr",
                                        "strlen",
                                        "strnlen",
                                        "strcmp",
                                        "strncmp",
                                        "strcasecmp",
                                        "strncasecmp",
                                        "strcpy",
                                        "strncpy",
                                        "stpcpy",
                                        "strcat",
                                        "strncat",
                                        "strchr",
                                        "strrchr",
                                        "strchrnul",
                                        "strstr",
                                        "strpbrk",
                                        "strspn",
                                        "strcspn",
                                        "strtok_r",
                                        "strdup",
                                        "strndup",
                                        "strtol",
                                        "strtoul",
                                        "strtoll",
                                        "strtoull",
                                        "strtod",
                                        "strtof",
                                        "atoi",
                                        "atol",
                                        "atof",
                                        "strcoll",
                                        "strerror",
                                        "isalpha",
                                        "isdigit",
                                        "isalnum",
                                        "isspace",
                                        "isupper",
                                        "islower",
                                        "ispunct",
                                        "isxdigit",
                                        "isprint",
                                        "iscntrl",
                                        "isgraph",
                                        "toupper",
                                        "tolower",
                                        "__ctype_b_loc",
                                        "__ctype_toupper_loc",
                                        "__ctype_tolower_loc",
                                        "__errno_location",
                                        "abs",
                                        "labs",
                                        "llabs",
                                        "sin",
                                        "cos",
                                        "tan",
                                        "asin",
                                        "acos",
                                        "atan",
                                        "atan2",
                                        "sinh",
                                        "cosh",
                                        "tanh",
                                        "exp",
                                        "exp2",
                                        "log",
                                        "log2",
                                        "log10",
                                        "log1p",
                                        "pow",
                                        "sqrt",
                                        "cbrt",
                                        "floor",
                                        "ceil",
                                        "round",
                                        "rint",
                                        "trunc",
                                        "lrint",
                                        "lround",
                                        "fmod",
                                        "ldexp",
                                        "frexp",
                                        "modf",
                                        "fabs",
                                        "hypot",
                                        "sinf",
                                        "cosf",
                                        "expf",
                                        "logf",
                                        "powf",
                                        "sqrtf",
                                        "floorf",
                                        "ceilf",
                                        "fmodf",
                                        "fabsf",
                                        "rand",
                                        "rand_r",
                                        "srand",
                                        "random",
                                        "time",
                                        "gettimeofday",
                                        "clock_gettime",
                                        "getpid",
                                        "putc",
                                        "getc",
                                        "fputc",
                                        "fgetc",
                                        "putchar",
                                        "getchar",
                                        "_IO_putc",
                                        "_IO_getc",
                                        "ungetc",
                                        "feof",
                                        "ferror",
                                        "localeconv",
                                        "__memcpy_chk",
                                        "__memmove_chk",
                                        "__memset_chk",
                                        "__strcpy_chk",
                                        "__strcat_chk",
                                        "pthread_self",
                                        "pthread_equal"};

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (begins_with(name, heads[i]))
            return true;
    return is_one_of(name, names, sizeof(names) / sizeof(names[0]));
}

/* The list above speaks of functions that are not the program's own. */
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
    if (known == ETCH_NONE && LLVMIsDeclaration(callee) && is_harmless(name_of(callee)))
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

static bool may_wait(const char *name)
{
    static const char *const heads[] = {"pthread_", "sem_", "mtx_", "cnd_", "thrd_", "epoll_", "wait", "recv", "send"};
    static const char *const names[] = {"read",    "write",     "poll",   "select", "accept",
                                        "connect", "nanosleep", "usleep", "sleep",  "sched_yield",
                                        "syscall", "futex",     "open",   "close",  "fsync"};

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (begins_with(name, heads[i]) && strcmp(name, "pthread_self") != 0)
            return true;
    return is_one_of(name, names, sizeof(names) / sizeof(names[0]));
}

/* Of another file, perhaps with a recorder: that file then defines NAME.etch and NAME.etch.plain, and if not, we do,
 * weakly. What is watched as synchronisation is called from where the program has it, not from a stub. */
static bool call_outside(struct instrument *in, LLVMValueRef call, bool recorded)
{
    LLVMValueRef callee = LLVMGetCalledValue(call), inner;
    LLVMTypeRef type;
    char name[512];
    const char *plain;

    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || classify(in, call) != CALL_OUTSIDE)
        return true;
    plain = name_of(callee);
    type = LLVMGlobalGetValueType(callee);
    if (LLVMIsFunctionVarArg(type) || etch_call_returns_twice(call) || etch_call_forks(call) ||
        (recorded && (may_wait(plain) || !etch_fits_registers(type, call))) || begins_with(plain, "__") ||
        strlen(plain) > 400 || strpbrk(plain, "\1\"\\@$") || LLVMGetLinkage(callee) != LLVMExternalLinkage ||
        LLVMGetCalledFunctionType(call) != type || LLVMGetFunctionCallConv(callee) != LLVMCCallConv)
        return true;
    snprintf(name, sizeof(name), "%s%s", plain, recorded ? ETCH_SOFT_CODE_SUFFIX : ETCH_SOFT_PLAIN_SUFFIX);
    inner = LLVMGetNamedFunction(in->emitter.module, name);
    if (!inner) {
        inner = LLVMAddFunction(in->emitter.module, name, type);
        LLVMSetVisibility(inner, LLVMHiddenVisibility);
        etch_emit_stub(&in->emitter, name, plain, recorded);
        if (recorded && !etch_pointers_set(&in->stubs, inner, 1))
            return false;
    }
    if (recorded)
        return etch_carry_call(&in->emitter, call, inner, NULL) != NULL;
    set_callee(call, inner);
    return true;
}

static void stamp_around(struct instrument *in, LLVMValueRef call)
{
    struct emitter *e = &in->emitter;
    LLVMValueRef callee = LLVMGetCalledValue(call), next;

    if (!LLVMIsACallInst(call) || !LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) ||
        !may_wait(name_of(callee)) || LLVMGetTailCallKind(call) == LLVMTailCallKindMustTail)
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
