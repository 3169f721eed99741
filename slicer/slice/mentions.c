/* SPDX-License-Identifier: MIT */
/* The memory accesses of an instruction of the bitcode, each with the name that the source has for the object. */
#include "slicer/slice/effects.h"
#include "slicer/slice/slicing.h"

#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

LLVMTargetDataRef etch_layout_of(const struct etch_model *m, uint32_t insn)
{
    return LLVMGetModuleDataLayout(m->modules.v[m->functions.v[etch_insn_function(m, insn)].module].module);
}

LLVMValueRef etch_constant_offset(const struct etch_model *m, uint32_t insn, LLVMValueRef pointer, int64_t *offset,
                                  bool *constant)
{
    LLVMTargetDataRef layout = etch_layout_of(m, insn);

    *offset = 0;
    *constant = true;
    while (LLVMIsAGetElementPtrInst(pointer) ||
           (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMGetElementPtr)) {
        LLVMTypeRef type = LLVMGetGEPSourceElementType(pointer);

        for (int i = 1; i < LLVMGetNumOperands(pointer); i++) {
            LLVMValueRef index = LLVMGetOperand(pointer, (unsigned)i);

            if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
                unsigned k = (unsigned)LLVMConstIntGetZExtValue(index);

                *offset += (int64_t)LLVMOffsetOfElement(layout, type, k);
                type = LLVMStructGetTypeAtIndex(type, k);
                continue;
            }
            if (i > 1)
                type = LLVMGetElementType(type);
            if (LLVMIsAConstantInt(index))
                *offset += LLVMConstIntGetSExtValue(index) * (int64_t)LLVMABISizeOfType(layout, type);
            else
                *constant = false;
        }
        pointer = LLVMGetOperand(pointer, 0);
    }
    return pointer;
}

/* clang has a thread-local variable's address from an intrinsic. */
static LLVMValueRef thread_local_base(LLVMValueRef base)
{
    LLVMValueRef called = LLVMIsACallInst(base) ? LLVMGetCalledValue(base) : NULL;
    size_t size;
    const char *name = called && LLVMIsAFunction(called) ? LLVMGetValueName2(called, &size) : "";

    return strncmp(name, "llvm.threadlocal.address", 24) == 0 ? LLVMGetOperand(base, 0) : base;
}

static bool add_mention(struct etch_model *m, uint32_t insn, LLVMValueRef pointer, LLVMTypeRef type, bool write,
                        etch_mentions *mentions)
{
    struct etch_mention mention = {.insn = insn, .pointer = pointer, .write = write};
    LLVMValueRef local = etch_memory_local(pointer), base = pointer;

    if (!etch_name_object(m, pointer, type, mention.name, sizeof(mention.name))) {
        if (local)
            return true; /* a temporary of the compiler's */
        snprintf(mention.name, sizeof(mention.name), "*?");
    }
    while (LLVMIsAGetElementPtrInst(base) || (LLVMIsAConstantExpr(base) && LLVMGetNumOperands(base)))
        base = LLVMGetOperand(base, 0);
    base = thread_local_base(base);
    mention.shared =
        !local && !(LLVMIsAGlobalVariable(base) && (LLVMIsThreadLocal(base) || LLVMIsGlobalConstant(base)));
    mention.size = type && LLVMTypeIsSized(type) ? (uint32_t)LLVMStoreSizeOfType(etch_layout_of(m, insn), type) : 0;
    return etch_array_push(mentions, mention);
}

/* Which argument a method of the C++ library gets its object in; ETCH_NONE: the call is of no such method. */
static uint32_t object_argument(LLVMValueRef call)
{
    const char *name = etch_called_name(call);
    LLVMValueRef function = etch_called(call);
    unsigned kind = LLVMGetEnumAttributeKindForName("sret", 4);
    bool returned = function && LLVMGetEnumAttributeAtIndex(function, 1, kind);

    if (strncmp(name, "_ZNSt", 5) != 0 && strncmp(name, "_ZNKSt", 6) != 0)
        return ETCH_NONE;
    return returned ? 1 : 0;
}

/* A method whose code is in a library. It may read all members of its object, and write them unless the method is
 * const. */
static bool add_outside(struct etch_model *m, uint32_t insn, etch_mentions *mentions)
{
    LLVMValueRef call = m->insns.v[insn].value;
    uint32_t argument = object_argument(call);
    bool writes = strncmp(etch_called_name(call), "_ZNK", 4) != 0;
    struct etch_members members = {.n = 0};

    if (argument < LLVMGetNumArgOperands(call))
        etch_name_members(m, LLVMGetOperand(call, argument), &members);
    for (size_t i = 0; i < members.n * (writes ? 2 : 1); i++) {
        struct etch_mention mention = {.insn = insn,
                                       .write = i >= members.n,
                                       .size = 8,
                                       .library = true,
                                       .parameter = argument,
                                       .offset = (int64_t)members.offset[i % members.n],
                                       .inner = ETCH_NONE,
                                       .pointer = LLVMGetOperand(call, argument)};

        mention.shared = !etch_memory_local(mention.pointer);
        if (etch_name_within(m, mention.pointer, mention.offset, mention.name, sizeof(mention.name)) &&
            !etch_array_push(mentions, mention))
            return false;
    }
    return true;
}

/* The effects of a library call on the objects that it gets, by the user's names for these objects. */
static bool add_library(struct etch_model *m, uint32_t insn, etch_mentions *mentions)
{
    const struct etch_insn *call = &m->insns.v[insn];
    const etch_effects *effects = call->callee == ETCH_NONE ? NULL : etch_effects_of(m, call->callee);

    if (call->callee == ETCH_NONE)
        return add_outside(m, insn, mentions);
    for (size_t i = 0; effects && i < effects->n; i++) {
        const struct etch_effect *e = &effects->v[i];
        struct etch_mention mention = {.insn = insn,
                                       .write = e->write,
                                       .size = e->size,
                                       .library = true,
                                       .parameter = e->parameter,
                                       .offset = e->offset,
                                       .inner = e->insn};

        if (e->parameter >= LLVMGetNumArgOperands(call->value))
            continue;
        mention.pointer = LLVMGetOperand(call->value, e->parameter);
        if (!etch_name_within(m, mention.pointer, e->offset, mention.name, sizeof(mention.name)))
            continue;
        mention.shared = !etch_memory_local(mention.pointer);
        if (!etch_array_push(mentions, mention))
            return false;
    }
    return true;
}

bool etch_mentions_of(struct etch_model *m, uint32_t insn, etch_mentions *mentions)
{
    LLVMValueRef v = m->insns.v[insn].value;
    LLVMValueRef op0 = LLVMGetNumOperands(v) ? LLVMGetOperand(v, 0) : NULL;

    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMLoad:
        return add_mention(m, insn, op0, LLVMTypeOf(v), false, mentions);
    case LLVMStore:
        return add_mention(m, insn, LLVMGetOperand(v, 1), LLVMTypeOf(op0), true, mentions);
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg: {
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(v, 1));

        return add_mention(m, insn, op0, type, false, mentions) && add_mention(m, insn, op0, type, true, mentions);
    }
    case LLVMInvoke:
        return add_library(m, insn, mentions);
    case LLVMCall:
        if (strncmp(etch_called_name(v), "llvm.mem", 8) != 0)
            return add_library(m, insn, mentions);
        if (strncmp(etch_called_name(v), "llvm.memset", 11) != 0 &&
            !add_mention(m, insn, LLVMGetOperand(v, 1), NULL, false, mentions))
            return false;
        return add_mention(m, insn, op0, NULL, true, mentions);
    default:
        return true;
    }
}
