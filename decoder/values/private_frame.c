/* SPDX-License-Identifier: MIT */
/* See private_frame.h. */
#include "decoder/values/private_frame.h"

#include <Zydis/Zydis.h>

static bool is_frame(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    return whole == ZYDIS_REGISTER_RSP || whole == ZYDIS_REGISTER_RBP;
}

/* `lea -40(%rbp), %rsp` and `mov %rsp, %rbp` only move the frame. */
static bool keeps_in_frame(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
    return i->operand_count_visible && o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && is_frame(o[0].reg.value);
}

/* True if a register of the frame is read as a number, and not as the base of a memory operand. */
static bool takes_address(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
    if (i->mnemonic == ZYDIS_MNEMONIC_LEA)
        return !keeps_in_frame(i, o) && (is_frame(o[1].mem.base) || is_frame(o[1].mem.index));
    if (i->mnemonic == ZYDIS_MNEMONIC_PUSH || i->mnemonic == ZYDIS_MNEMONIC_POP)
        return i->mnemonic == ZYDIS_MNEMONIC_PUSH && o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               o[0].reg.value == ZYDIS_REGISTER_RSP;
    for (unsigned k = 0; k < i->operand_count_visible; k++)
        if (o[k].type == ZYDIS_OPERAND_TYPE_REGISTER && is_frame(o[k].reg.value) &&
            (o[k].actions & ZYDIS_OPERAND_ACTION_MASK_READ) && !keeps_in_frame(i, o))
            return true;
    return false;
}

bool etch_frame_is_private(const uint8_t *bytes, size_t size)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction i;
    ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
    bool set = false; /* the frame pointer is one */

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t at = 0; at < size; at += i.length) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, size - at, &i, o)) || takes_address(&i, o))
            return false;
        set |= i.mnemonic == ZYDIS_MNEMONIC_MOV && o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               o[0].reg.value == ZYDIS_REGISTER_RBP && o[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               o[1].reg.value == ZYDIS_REGISTER_RSP;
    }
    return set;
}
