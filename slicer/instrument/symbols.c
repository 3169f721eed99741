/* SPDX-License-Identifier: MIT */
/* The symbols of a function with a recorder: its body, the entry for code without a recorder, the plain copy, and
 * guards for a function that another module may replace. */
#include "slicer/instrument/recorded.h"

#include <llvm-c/Comdat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The entry ---- */

/* Removes attributes that the recording code makes untrue: with them, calls could vanish or merge. */
static void weaken(LLVMValueRef function)
{
    static const char *const gone[] = {"memory",       "willreturn", "nosync",     "nofree",      "mustprogress",
                                       "speculatable", "norecurse",  "nocallback", "alwaysinline"};

    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        LLVMRemoveEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                       LLVMGetEnumAttributeKindForName(gone[i], strlen(gone[i])));
}

static bool is_recorded(const struct instrument *in, LLVMValueRef function)
{
    return etch_pointers_get(&in->index, function) != ETCH_NONE;
}

/* True if the function is used only by calls from functions with a recorder. */
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

/* Makes the reporter, unless the body reports itself. */
static bool make_reporter(struct instrument *in, struct recorded *r, const char *name)
{
    char *reporter = NULL;

    r->reporter = r->body;
    if (r->enters)
        return true;
    if (asprintf(&reporter, "%s" ETCH_SOFT_TELLER_SUFFIX, name) < 0)
        return false;
    r->reporter = etch_emit_entry(&in->emitter, r->body, r->before, reporter);
    free(reporter);
    if (!r->reporter)
        return false;
    LLVMSetLinkage(r->reporter, LLVMInternalLinkage);
    if (LLVMGetComdat(r->body))
        LLVMSetComdat(r->reporter, LLVMGetComdat(r->body));
    return true;
}

/* Makes the entry, which leads to the reporter or to the plain copy. A function that only recorded code calls needs
 * none. Its reporter is for plain copies (etch_allow_detour()). */
static bool make_entry(struct instrument *in, struct recorded *r, const char *name, bool local)
{
    bool called = local && is_only_called(in, r->before);

    if (called && !r->plain)
        return true;
    if (!make_reporter(in, r, name))
        return false;
    if (!called)
        r->entry = etch_emit_gate(&in->emitter, r->body, r->before, r->reporter, r->plain, r->lit, name);
    return called || r->entry;
}

/* Another name beside the function's own: seen by the program's other files where the function is, and they may call
 * it by that name. Those that do not see its definition (an extern template) have a weak stub of that name, which the
 * linker must not take for it. A comdat is what keeps several definitions apart, so that none needs to be weak. */
static void place_inner(struct instrument *in, LLVMValueRef inner, bool called, LLVMLinkage linkage, bool in_comdat)
{
    if (in_comdat)
        LLVMSetComdat(inner, called ? LLVMGetOrInsertComdat(in->emitter.module, etch_value_name(inner)) : NULL);
    LLVMSetLinkage(inner, !called ? LLVMInternalLinkage : in_comdat ? LLVMExternalLinkage : linkage);
    if (called && linkage != LLVMInternalLinkage && linkage != LLVMPrivateLinkage)
        LLVMSetVisibility(inner, LLVMHiddenVisibility);
}

/* ---- Guards ---- */

bool etch_is_simple_name(const char *name)
{
    return strlen(name) <= 400 && !strpbrk(name, "\1\"\\@$");
}

static bool can_guard(const struct recorded *r)
{
    return r->replaceable && etch_is_simple_name(etch_value_name(r->before)) &&
           LLVMGetFunctionCallConv(r->before) == LLVMCCallConv;
}

static bool can_guard_plain(const struct recorded *r)
{
    return r->plain && can_guard(r) && !LLVMGetComdat(r->before);
}

/* Several files may have code for a comdat. The code must be the same in all of them. */
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

/* Other files call the guard of a comdat only if they have the comdat, too. */
static LLVMValueRef add_guard(struct instrument *in, struct recorded *r, const char *name, bool recorded)
{
    char own[512];
    bool comdat = LLVMGetComdat(r->entry) != NULL;
    struct guard guard = {.name = own,
                          .function = name,
                          .code = etch_value_name(recorded ? r->body : r->plain),
                          .recorded = recorded,
                          .comdat = comdat,
                          .weak = !comdat && LLVMGetLinkage(r->entry) != LLVMExternalLinkage};
    LLVMValueRef function;

    snprintf(own, sizeof(own), "%s%s", name,
             comdat     ? ETCH_SOFT_GUARD_SUFFIX
             : recorded ? ETCH_SOFT_CODE_SUFFIX
                        : ETCH_SOFT_PLAIN_SUFFIX);
    if (!etch_emit_guard(&in->emitter, &guard))
        return NULL;
    function = LLVMAddFunction(in->emitter.module, own, LLVMGlobalGetValueType(r->entry));
    LLVMSetVisibility(function, LLVMHiddenVisibility);
    return function;
}

/* An instruction with the value as an operand that is not the callee, and the number of that operand; NULL: none. */
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

/* With -fno-semantic-interposition, code of the file that takes the address of the function means this definition.
 * Tables do not. */
static void use_here(const struct recorded *r)
{
    LLVMValueRef user;
    unsigned operand;

    while (r->direct && (user = next_user(r->entry, &operand)))
        LLVMSetOperand(user, operand, r->here);
}

/* Guards compare the loader's address with the function's address in this module. */
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

/* ---- All symbols of a function ---- */

/* Other files call the guard by the name of the code, so the code gets another name. */
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

static bool add_lit(struct instrument *in, struct recorded *r, const char *name)
{
    if (!r->plain || r->enters || !etch_may_go_dark(r->body))
        return true;
    r->lit = etch_emit_lit(&in->emitter, r->body, name);
    return r->lit != NULL;
}

/* The body gets a new name. The rest of the program sees the entry by the old name. */
static bool separate(struct instrument *in, struct recorded *r)
{
    char *name = strdup(etch_value_name(r->body)), *inner = NULL;
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
        r->body = etch_cursor_abi_apply(&in->emitter, r->before, inner);
    if (!r->body || !add_lit(in, r, name) || !make_entry(in, r, name, local)) {
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

bool etch_recorded_separate(struct instrument *in)
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
