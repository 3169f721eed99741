/* SPDX-License-Identifier: MIT */
/* The functions of the source that a function's code comes from: its own, and functions that were inlined into it. */
#include "base/function_name.h"
#include "base/path.h"
#include "slicer/instrument/model.h"
#include "slicer/model/subprogram.h"

#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

/* LLVM-C has no names for these: operands of the metadata, as LLVM 19 lays them out. */
enum { SCOPE_PARENT = 1, SUBPROGRAM_NAME = 2, SUBPROGRAM_LINKAGE_NAME = 3, OPERANDS_MAX = 64 };

static LLVMValueRef operand_of(LLVMContextRef context, LLVMMetadataRef node, unsigned which)
{
    LLVMValueRef value = LLVMMetadataAsValue(context, node), operands[OPERANDS_MAX];
    unsigned n = LLVMGetMDNodeNumOperands(value);

    if (which >= n || n > OPERANDS_MAX)
        return NULL;
    LLVMGetMDNodeOperands(value, operands);
    return operands[which];
}

static bool is_text(LLVMContextRef context, LLVMMetadataRef node, unsigned which, const char *text)
{
    LLVMValueRef value = operand_of(context, node, which);
    unsigned n = 0;
    const char *name = value ? LLVMGetMDString(value, &n) : NULL;

    return name && n == strlen(text) && memcmp(name, text, n) == 0;
}

/* The function of a scope; NULL: none. */
static LLVMMetadataRef subprogram_of(LLVMContextRef context, LLVMMetadataRef scope)
{
    for (unsigned i = 0; scope && i < 1000; i++) {
        LLVMMetadataKind kind = LLVMGetMetadataKind(scope);
        LLVMValueRef parent;

        if (kind == LLVMDISubprogramMetadataKind)
            return scope;
        if (kind != LLVMDILexicalBlockMetadataKind && kind != LLVMDILexicalBlockFileMetadataKind)
            return NULL;
        parent = operand_of(context, scope, SCOPE_PARENT);
        scope = parent ? LLVMValueAsMetadata(parent) : NULL;
    }
    return NULL;
}

/* Files are compared by their names alone: the slice may know the folder by another path. */
static bool is_of_file(LLVMMetadataRef subprogram, const char *wanted)
{
    LLVMMetadataRef file = LLVMDIScopeGetFile(subprogram);
    unsigned n = 0;
    const char *name = file ? LLVMDIFileGetFilename(file, &n) : "";
    size_t k;

    wanted = etch_path_name(wanted);
    k = strlen(wanted);
    return n >= k && memcmp(name + n - k, wanted, k) == 0 && (n == k || name[n - k - 1] == '/');
}

/* A user may write a function as the source does, as the linker does, as etch shows it, or whole. */
static bool is_called(LLVMContextRef context, LLVMMetadataRef subprogram, const char *wanted)
{
    char *whole = etch_subprogram_name(context, subprogram), brief[256];
    bool called =
        whole && (strcmp(whole, wanted) == 0 || strcmp(etch_function_short(whole, brief, sizeof(brief)), wanted) == 0);

    free(whole);
    return called || is_text(context, subprogram, SUBPROGRAM_NAME, wanted) ||
           is_text(context, subprogram, SUBPROGRAM_LINKAGE_NAME, wanted);
}

static bool is_scope(LLVMContextRef context, LLVMMetadataRef subprogram, const struct etch_instrument_options *o)
{
    for (size_t i = 0; subprogram && i < o->n_scopes; i++)
        if (is_of_file(subprogram, o->scopes[i].file) && is_called(context, subprogram, o->scopes[i].function))
            return true;
    return false;
}

bool etch_has_scope(LLVMValueRef function, const struct etch_instrument_options *o)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);
    LLVMMetadataRef last = NULL;

    if (!o->n_scopes)
        return false;
    if (is_scope(context, LLVMGetSubprogram(function), o))
        return true;
    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
            LLVMMetadataRef at = LLVMInstructionGetDebugLoc(i);

            for (; at && at != last; at = LLVMDILocationGetInlinedAt(at))
                if (LLVMDILocationGetInlinedAt(at) &&
                    is_scope(context, subprogram_of(context, LLVMDILocationGetScope(at)), o))
                    return true;
            last = LLVMInstructionGetDebugLoc(i);
        }
    return false;
}
