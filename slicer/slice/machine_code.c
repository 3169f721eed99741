/* SPDX-License-Identifier: MIT */
/* Functions, variables and instructions of the bitcode in the machine code. See machine_code.h. */
#include "slicer/slice/machine_code.h"

#include "base/path.h"
#include "proto/soft_layout.h"

#include <stdio.h>
#include <string.h>

/* ---- Symbols ---- */

static uint32_t image_of(const struct etch_model *m, LLVMValueRef global)
{
    LLVMModuleRef module = LLVMGetGlobalParent(global);

    for (size_t i = 0; i < m->modules.n; i++)
        if (m->modules.v[i].module == module)
            return m->modules.v[i].image;
    return ETCH_NONE;
}

uint64_t etch_code_symbol(const struct etch_model *m, LLVMValueRef global, const char *name)
{
    LLVMLinkage linkage = LLVMGetLinkage(global);
    bool local = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
    bool own = local || LLVMIsAFunction(global);
    size_t n;
    const char *source = LLVMGetSourceFileName(LLVMGetGlobalParent(global), &n);
    uint64_t address, size;

    return etch_line_table_symbol(m->lines, name, local ? etch_path_name(source) : NULL,
                                  own ? image_of(m, global) : ETCH_NONE, &address, &size)
               ? address
               : 0;
}

uint64_t etch_code_variable(const struct etch_model *m, LLVMValueRef global, int64_t offset)
{
    size_t n;
    uint64_t address = LLVMIsThreadLocal(global) ? 0 : etch_code_symbol(m, global, LLVMGetValueName2(global, &n));

    return address ? address + (uint64_t)offset : 0;
}

/* The recorder gives its forms of a function the name of the function and one of these endings. */
static const char *const endings[] = {ETCH_SOFT_GUARDED_CODE_SUFFIX, ETCH_SOFT_CODE_SUFFIX, ""};

uint64_t etch_code_symbol_with(const struct etch_model *m, LLVMValueRef function, const char *ending)
{
    char name[512];
    size_t n;

    snprintf(name, sizeof(name), "%s%s", LLVMGetValueName2(function, &n), ending);
    return etch_code_symbol(m, function, name);
}

uint64_t etch_code_entry(const struct etch_model *m, LLVMValueRef function)
{
    uint64_t address = 0;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && !address; i++)
        address = etch_code_symbol_with(m, function, endings[i]);
    return address;
}

bool etch_code_is_of(const struct etch_model *m, uint64_t address, uint32_t insn)
{
    LLVMValueRef function = m->functions.v[etch_insn_function(m, insn)].value;
    bool found = false;
    char name[512];
    uint64_t start = 0, size = 0;
    size_t n;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && !found; i++) {
        snprintf(name, sizeof(name), "%s%s", LLVMGetValueName2(function, &n), endings[i]);
        found = etch_line_table_symbol(m->lines, name, NULL, ETCH_NONE, &start, &size);
    }
    return found && address >= start && address - start < size;
}

/* ---- Instructions ---- */

void etch_code_visit(const struct etch_model *m, uint64_t start, uint64_t end, etch_code_visitor *visit, void *context)
{
    ZydisDecoder decoder;
    size_t size;
    const uint8_t *code = etch_line_table_code(m->lines, start, &size);

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (uint64_t at = start; code && at < end && at - start < size;) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + (at - start), size - (at - start), &insn, ops)) ||
            !visit(context, at, &insn, ops))
            return;
        at += insn.length;
    }
}

bool etch_code_is_watched(const struct etch_model *m, uint64_t address)
{
    const struct etch_line_row *row = etch_line_table_at(m->lines, address);

    return !row || !row->plain;
}

/* ---- Registers ---- */

const char *etch_register_name(ZydisRegister reg)
{
    const char *name = reg == ZYDIS_REGISTER_NONE ? "" : ZydisRegisterGetString(reg);

    return name ? name : "";
}

ZydisRegister etch_register_of(LLVMValueRef function, LLVMValueRef parameter)
{
    static const ZydisRegister registers[] = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
                                              ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9};

    for (unsigned i = 0; i < LLVMCountParams(function) && i < 6; i++) {
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(function, i)));

        if (kind != LLVMIntegerTypeKind && kind != LLVMPointerTypeKind)
            return ZYDIS_REGISTER_NONE;
        if (LLVMGetParam(function, i) == parameter)
            return registers[i];
    }
    return ZYDIS_REGISTER_NONE;
}

bool etch_code_keeps_frame_pointer(const struct etch_model *m, uint32_t insn)
{
    LLVMValueRef function = m->functions.v[etch_insn_function(m, insn)].value;
    LLVMAttributeRef attribute =
        LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "frame-pointer", 13);
    unsigned n = 0;

    return attribute && strncmp(LLVMGetStringAttributeValue(attribute, &n), "none", 4) != 0;
}
