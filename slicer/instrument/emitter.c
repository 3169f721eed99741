/* SPDX-License-Identifier: MIT */
/* The emitter: a module, its builder, its types, and the runtime's functions and variables. */
#include "slicer/instrument/model.h"

#include <string.h>

LLVMValueRef etch_emit_byte(const struct emitter *e, unsigned value)
{
    return LLVMConstInt(e->byte, value, false);
}

/* Our code has no place in the source. */
void etch_emit_before(const struct emitter *e, LLVMValueRef instruction)
{
    LLVMPositionBuilderBeforeInstrAndDbgRecords(e->builder, instruction);
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
}

void etch_set_flag(const struct emitter *e, LLVMValueRef function, const char *name)
{
    LLVMAddAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateEnumAttribute(e->context, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0));
}

static LLVMValueRef declare(struct emitter *e, const char *name, LLVMTypeRef type)
{
    LLVMValueRef function = LLVMGetNamedFunction(e->module, name);

    if (!function) {
        function = LLVMAddFunction(e->module, name, type);
        LLVMSetVisibility(function, LLVMHiddenVisibility);
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(e->context, LLVMGetEnumAttributeKindForName("nounwind", 8), 0));
    }
    return function;
}

static LLVMValueRef declare_thread_local(struct emitter *e, const char *name)
{
    LLVMValueRef variable = LLVMAddGlobal(e->module, e->pointer, name);

    LLVMSetThreadLocalMode(variable, e->shared ? LLVMInitialExecTLSModel : LLVMLocalExecTLSModel);
    return variable;
}

void etch_emitter_open(struct emitter *e, LLVMModuleRef module)
{
    LLVMTypeRef p, q, types[4];

    e->module = module;
    e->context = LLVMGetModuleContext(module);
    e->builder = LLVMCreateBuilderInContext(e->context);
    e->void_type = LLVMVoidTypeInContext(e->context);
    e->byte = LLVMInt8TypeInContext(e->context);
    e->word = LLVMInt32TypeInContext(e->context);
    e->quad = q = LLVMInt64TypeInContext(e->context);
    e->pointer = p = LLVMPointerTypeInContext(e->context, 0);
    e->shared = LLVMGetModuleFlag(module, "PIC Level", 9) && !LLVMGetModuleFlag(module, "PIE Level", 9);
    e->enter_type = LLVMFunctionType(p, (types[0] = p, types[1] = q, types[2] = q, types[3] = p, types), 4, 0);
    e->enter = declare(e, "etch_soft_enter3", e->enter_type);
    e->leave_type = LLVMFunctionType(e->void_type, (types[0] = p, types), 1, 0);
    e->leave = declare(e, "etch_soft_leave", e->leave_type);
    e->unwind = declare(e, "etch_soft_unwind", e->leave_type);
    e->land_type = LLVMFunctionType(e->void_type, (types[0] = p, types[1] = q, types[2] = e->word, types), 3, 0);
    e->land = declare(e, "etch_soft_land", e->land_type);
    e->stamp_type = LLVMFunctionType(e->void_type, NULL, 0, 0);
    e->stamp = declare(e, "etch_soft_stamp", e->stamp_type);
    e->stamp_held = declare(e, "etch_soft_stamp_held", e->leave_type);
    e->top = declare_thread_local(e, "etch_soft_top");
    e->cursor = declare_thread_local(e, "etch_soft_cur");
    e->shade = declare_thread_local(e, "etch_soft_shade");
}

void etch_emitter_close(struct emitter *e)
{
    LLVMDisposeBuilder(e->builder);
    etch_pointers_release(&e->bytes);
    etch_pointers_release(&e->cursor_calls);
    etch_array_free(&e->is);
}
