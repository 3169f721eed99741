/* SPDX-License-Identifier: MIT */
/* The world without a recorder: a copy of each function as the optimiser left it, for programs that are started without
 * etch. LLVM-C copies modules, not functions: so the module is copied whole, all in the copy but the wanted functions
 * becomes a mere reference, by name, to what the module has, and both are linked into one again. */
#include "slicer/instrument/model.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Comdat.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A local symbol that is global for a while, so that the copy can refer to it. */
struct opened {
    LLVMValueRef value;
    LLVMLinkage linkage;
};

typedef ETCH_ARRAY(struct opened) opened_list;

static const char *name_of(LLVMValueRef value)
{
    size_t n;

    return LLVMGetValueName2(value, &n);
}

static bool is_local(LLVMValueRef value)
{
    LLVMLinkage linkage = LLVMGetLinkage(value);

    return linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
}

/* ---- Computed gotos ---- */

static bool is_used_only_in(LLVMValueRef value, LLVMValueRef function)
{
    for (LLVMUseRef u = LLVMGetFirstUse(value); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);

        if (LLVMIsAInstruction(user)
                ? LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)) != function
                : LLVMIsAGlobalValue(user) || !LLVMIsAConstant(user) || !is_used_only_in(user, function))
            return false;
    }
    return true;
}

/* A constant table of labels that only their own function reads: each copy can have its own. */
static bool is_own_table(LLVMValueRef user, LLVMValueRef function)
{
    return LLVMIsAGlobalVariable(user) && is_local(user) && LLVMIsGlobalConstant(user) &&
           is_used_only_in(user, function);
}

/* Do labels stay within the function: in its own code, and in tables of its own? Those are added to `tables`. */
static bool keeps(LLVMValueRef address, LLVMValueRef function, values *tables)
{
    for (LLVMUseRef u = LLVMGetFirstUse(address); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);

        if (LLVMIsAInstruction(user)) {
            if (LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)) != function)
                return false;
        } else if (LLVMIsAGlobalValue(user)) {
            if (!is_own_table(user, function) || !etch_array_push(tables, user))
                return false;
        } else if (!LLVMIsAConstant(user) || !keeps(user, function, tables)) {
            return false;
        }
    }
    return true;
}

static bool keeps_labels(LLVMValueRef function, values *tables)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);

    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u; u = LLVMGetNextUse(u))
            if (LLVMIsABlockAddress(LLVMGetUser(u)) && !keeps(LLVMGetUser(u), function, tables))
                return false;
    return true;
}

/* ---- Assembly ---- */

/* A label with a name cannot be there twice. A number can, and so can a label with LLVM's counter in it. */
static bool names_labels(const char *code, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t from = i;

        if (code[i] != ':' || (i > 0 && code[i - 1] == '{') || (i + 1 < n && code[i + 1] == ':'))
            continue;
        while (from > 0 && !strchr(" \t\n;", code[from - 1]))
            from--;
        if (from < i && (code[from] < '0' || code[from] > '9') && !memchr(code + from, '$', i - from) &&
            !memchr(code + from, '%', i - from))
            return true;
    }
    return false;
}

static bool can_repeat_asm(LLVMValueRef function)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);

    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
            LLVMValueRef callee = LLVMIsACallInst(i) || LLVMIsAInvokeInst(i) ? LLVMGetCalledValue(i) : NULL;
            const char *code;
            size_t n;

            if (!callee || !LLVMIsAInlineAsm(callee))
                continue;
            code = LLVMGetInlineAsmAsmString(callee, &n);
            if (names_labels(code, n))
                return false;
        }
    return true;
}

bool etch_can_copy(LLVMValueRef function, values *tables)
{
    size_t had = tables->n;

    if (!etch_has_attribute(function, "noduplicate") && can_repeat_asm(function) && keeps_labels(function, tables))
        return true;
    tables->n = had;
    return false;
}

/* ---- Names for all ---- */

static bool open_value(opened_list *list, LLVMValueRef value, unsigned *unnamed)
{
    char name[32];
    struct opened o = {value, LLVMGetLinkage(value)};

    if (!name_of(value)[0]) {
        snprintf(name, sizeof(name), ".etch.%u", (*unnamed)++);
        LLVMSetValueName2(value, name, strlen(name));
    }
    if (!is_local(value))
        return true;
    if (!etch_array_push(list, o))
        return false;
    LLVMSetLinkage(value, LLVMExternalLinkage);
    return true;
}

static bool open_all(LLVMModuleRef m, opened_list *list)
{
    unsigned unnamed = 0;
    bool whole = true;

    for (LLVMValueRef v = LLVMGetFirstFunction(m); v && whole; v = LLVMGetNextFunction(v))
        whole = open_value(list, v, &unnamed);
    for (LLVMValueRef v = LLVMGetFirstGlobal(m); v && whole; v = LLVMGetNextGlobal(v))
        whole = open_value(list, v, &unnamed);
    for (LLVMValueRef v = LLVMGetFirstGlobalAlias(m); v && whole; v = LLVMGetNextGlobalAlias(v))
        whole = open_value(list, v, &unnamed);
    for (LLVMValueRef v = LLVMGetFirstGlobalIFunc(m); v && whole; v = LLVMGetNextGlobalIFunc(v))
        whole = open_value(list, v, &unnamed);
    return whole;
}

static void close_all(opened_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        LLVMSetLinkage(list->v[i].value, list->v[i].linkage);
    etch_array_free(list);
}

/* ---- In the copy ---- */

static void refer(LLVMValueRef value)
{
    if (LLVMIsDeclaration(value))
        return;
    LLVMSetComdat(value, NULL);
    LLVMSetLinkage(value, LLVMAvailableExternallyLinkage);
}

/* Drops the lists that the linker would append to the module's own. */
static void drop_lists(LLVMModuleRef copy)
{
    LLVMValueRef v = LLVMGetFirstGlobal(copy), next;

    for (; v; v = next) {
        next = LLVMGetNextGlobal(v);
        if (LLVMGetLinkage(v) == LLVMAppendingLinkage)
            LLVMDeleteGlobal(v);
    }
    LLVMSetModuleInlineAsm2(copy, "", 0);
}

/* Takes the name from a value: another value can have the name then. Nothing refers to the value, so it is not linked.
 */
static char *take_name(LLVMValueRef value)
{
    char *name = strdup(name_of(value));

    LLVMSetValueName2(value, "", 0);
    return name;
}

/* A reference cannot be an alias. */
static bool refer_alias(LLVMModuleRef copy, LLVMValueRef alias)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(alias);
    LLVMVisibility visibility = LLVMGetVisibility(alias);
    LLVMUnnamedAddr address = LLVMGetUnnamedAddress(alias);
    bool function = LLVMGetTypeKind(type) == LLVMFunctionTypeKind;
    char *name = take_name(alias);
    LLVMValueRef reference = !name      ? NULL
                             : function ? LLVMAddFunction(copy, name, type)
                                        : LLVMAddGlobal(copy, type, name);

    free(name);
    if (!reference)
        return false;
    if (!function)
        LLVMSetThreadLocalMode(reference, LLVMGetThreadLocalMode(alias));
    LLVMSetVisibility(reference, visibility);
    LLVMSetUnnamedAddress(reference, address);
    LLVMReplaceAllUsesWith(alias, reference);
    LLVMSetLinkage(alias, LLVMInternalLinkage);
    return true;
}

static bool refer_to_all(LLVMModuleRef copy)
{
    for (LLVMValueRef v = LLVMGetFirstGlobal(copy); v; v = LLVMGetNextGlobal(v))
        refer(v);
    for (LLVMValueRef v = LLVMGetFirstFunction(copy); v; v = LLVMGetNextFunction(v))
        refer(v);
    for (LLVMValueRef v = LLVMGetFirstGlobalAlias(copy); v; v = LLVMGetNextGlobalAlias(v))
        if (!refer_alias(copy, v))
            return false;
    for (LLVMValueRef v = LLVMGetFirstGlobalIFunc(copy); v; v = LLVMGetNextGlobalIFunc(v))
        if (!refer_alias(copy, v))
            return false;
    return true;
}

void etch_replace_function(LLVMValueRef function, LLVMValueRef by)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);

    LLVMReplaceAllUsesWith(function, by);
    /* The addresses of its labels are now said to be the other's. */
    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u;) {
            LLVMValueRef user = LLVMGetUser(u);

            u = LLVMGetNextUse(u);
            if (LLVMIsABlockAddress(user) && LLVMGetOperand(user, 0) == by)
                LLVMReplaceAllUsesWith(user, LLVMBlockAddress(function, block));
        }
}

/* In the copy: the function gets its name, and all uses of it now refer to the module's function. */
static LLVMValueRef rename_copy(LLVMModuleRef copy, const char *name, const char *plain)
{
    LLVMValueRef function = LLVMGetNamedFunction(copy, name), reference;

    LLVMSetValueName2(function, plain, strlen(plain));
    LLVMSetLinkage(function, LLVMExternalLinkage);
    reference = LLVMAddFunction(copy, name, LLVMGlobalGetValueType(function));
    LLVMSetFunctionCallConv(reference, LLVMGetFunctionCallConv(function));
    LLVMSetVisibility(reference, LLVMGetVisibility(function));
    LLVMSetUnnamedAddress(reference, LLVMGetUnnamedAddress(function));
    LLVMSetVisibility(function, LLVMDefaultVisibility);
    etch_replace_function(function, reference);
    return function;
}

static bool fill_copy(LLVMModuleRef copy, struct plain_copy *all, size_t n, const values *tables, const char *suffix)
{
    for (size_t i = 0; i < n; i++) {
        char *plain = NULL;

        if (!all[i].wanted)
            continue;
        if (asprintf(&plain, "%s%s", name_of(all[i].function), suffix) < 0)
            return false;
        rename_copy(copy, name_of(all[i].function), plain);
        free(plain);
    }
    for (size_t i = 0; i < tables->n; i++)
        LLVMSetLinkage(LLVMGetNamedGlobal(copy, name_of(tables->v[i])), LLVMInternalLinkage);
    return true;
}

/* Names and lines are enough where nothing is recorded. */
static void thin_debug(LLVMModuleRef copy)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(copy, "strip-nonlinetable-debuginfo", NULL, options);

    LLVMDisposePassBuilderOptions(options);
    if (error)
        LLVMConsumeError(error);
}

static void find_copies(LLVMModuleRef m, struct plain_copy *all, size_t n, const char *suffix)
{
    char name[4096];

    for (size_t i = 0; i < n; i++) {
        if (!all[i].wanted)
            continue;
        snprintf(name, sizeof(name), "%s%s", name_of(all[i].function), suffix);
        all[i].plain = LLVMGetNamedFunction(m, name);
    }
}

/* By way of bitcode: LLVMCloneModule leaves the addresses of labels in tables those of the original. */
static LLVMModuleRef copy_module(LLVMModuleRef module)
{
    LLVMMemoryBufferRef buffer = LLVMWriteBitcodeToMemoryBuffer(module);
    LLVMModuleRef copy = NULL;

    if (buffer && LLVMParseBitcodeInContext2(LLVMGetModuleContext(module), buffer, &copy))
        copy = NULL;
    if (buffer)
        LLVMDisposeMemoryBuffer(buffer);
    return copy;
}

bool etch_copy_plain(LLVMModuleRef module, struct plain_copy *all, size_t n, const values *tables, const char *suffix)
{
    opened_list opened = {0};
    LLVMModuleRef copy = NULL;
    bool whole = open_all(module, &opened);

    if (whole)
        copy = copy_module(module);
    whole = copy != NULL;
    if (whole) {
        drop_lists(copy);
        whole = refer_to_all(copy) && fill_copy(copy, all, n, tables, suffix);
    }
    if (whole) {
        thin_debug(copy);
        whole = !LLVMLinkModules2(module, copy); /* which is gone now */
        copy = NULL;
    }
    if (copy)
        LLVMDisposeModule(copy);
    close_all(&opened);
    if (whole)
        find_copies(module, all, n, suffix);
    return whole;
}

/* ---- A detour ---- */

/* `prologue-short-redirect` makes the first instruction at least two bytes long. */
void etch_allow_detour(const struct emitter *e, LLVMValueRef plain, LLVMValueRef to)
{
    static const char name[] = "patchable-function", value[] = "prologue-short-redirect";
    LLVMValueRef pad[ETCH_SOFT_DETOUR_SIZE - 4], fields[2], distance;
    size_t n = sizeof(pad) / sizeof(pad[0]);

    for (size_t i = 0; i < n; i++)
        pad[i] = etch_emit_byte(e, i + 1 < n ? 0xcc : 0xe9); /* int3, and a jump */
    distance = LLVMConstSub(LLVMConstPtrToInt(to, e->quad), LLVMConstPtrToInt(plain, e->quad));
    fields[0] = LLVMConstArray2(e->byte, pad, n);
    fields[1] = LLVMConstTrunc(distance, e->word);
    LLVMSetPrefixData(plain, LLVMConstStructInContext(e->context, fields, 2, true));
    LLVMAddAttributeAtIndex(plain, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(e->context, name, sizeof(name) - 1, value, sizeof(value) - 1));
}
