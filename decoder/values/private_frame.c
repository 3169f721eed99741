/* SPDX-License-Identifier: MIT */
/* See private_frame.h. */
#include "decoder/values/private_frame.h"

#include <Zydis/Zydis.h>

/* A function on the way. rbp is looked at first: it may be the frame pointer, or a register like all others. */
struct look {
    ZydisDecoder decoder;
    ZydisDecodedInstruction i;
    ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
    bool by_bp; /* rbp has an address of the frame at times */
};

static bool is_whole(ZydisRegister reg, ZydisRegister which)
{
    return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) == which;
}

static bool is_frame(const struct look *l, ZydisRegister reg)
{
    return is_whole(reg, ZYDIS_REGISTER_RSP) || (l->by_bp && is_whole(reg, ZYDIS_REGISTER_RBP));
}

static bool is_register(const ZydisDecodedOperand *o, ZydisRegister which)
{
    return o->type == ZYDIS_OPERAND_TYPE_REGISTER && is_whole(o->reg.value, which);
}

/* `mov %rsp, %rbp` and `lea 8(%rsp), %rbp` make rbp the frame pointer. */
static bool sets_frame_pointer(const struct look *l)
{
    if (!l->i.operand_count_visible || !is_register(&l->o[0], ZYDIS_REGISTER_RBP))
        return false;
    return (l->i.mnemonic == ZYDIS_MNEMONIC_MOV && is_register(&l->o[1], ZYDIS_REGISTER_RSP)) ||
           (l->i.mnemonic == ZYDIS_MNEMONIC_LEA &&
            (l->o[1].mem.base == ZYDIS_REGISTER_RSP || l->o[1].mem.index == ZYDIS_REGISTER_RSP));
}

static bool writes_frame_pointer(const struct look *l)
{
    return l->i.operand_count_visible && is_register(&l->o[0], ZYDIS_REGISTER_RBP) &&
           (l->o[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) && l->i.mnemonic != ZYDIS_MNEMONIC_POP;
}

/* `lea -40(%rbp), %rsp` and `mov %rsp, %rbp` only move the frame. */
static bool keeps_in_frame(const struct look *l)
{
    return l->i.operand_count_visible && l->o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && is_frame(l, l->o[0].reg.value);
}

/* True if a register of the frame is read as a number, and not as the base of a memory operand. */
static bool takes_address(const struct look *l)
{
    const ZydisDecodedOperand *o = l->o;

    if (l->i.mnemonic == ZYDIS_MNEMONIC_LEA)
        return !keeps_in_frame(l) && (is_frame(l, o[1].mem.base) || is_frame(l, o[1].mem.index));
    if (l->i.mnemonic == ZYDIS_MNEMONIC_PUSH || l->i.mnemonic == ZYDIS_MNEMONIC_POP) /* rbp is saved for the caller */
        return l->i.mnemonic == ZYDIS_MNEMONIC_PUSH && is_register(&o[0], ZYDIS_REGISTER_RSP);
    for (unsigned k = 0; k < l->i.operand_count_visible; k++)
        if (o[k].type == ZYDIS_OPERAND_TYPE_REGISTER && is_frame(l, o[k].reg.value) &&
            (o[k].actions & ZYDIS_OPERAND_ACTION_MASK_READ) && !keeps_in_frame(l))
            return true;
    return false;
}

/* Part of the function is elsewhere: a conditional branch leaves it. */
static bool leaves(const struct look *l, size_t next, size_t size)
{
    int64_t to = (int64_t)next + l->o[0].imm.value.s;

    return l->i.meta.category == ZYDIS_CATEGORY_COND_BR && l->o[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
           (to < 0 || to >= (int64_t)size);
}

static bool decode(struct look *l, const uint8_t *bytes, size_t size)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&l->decoder, bytes, size, &l->i, l->o));
}

enum etch_stack_frame etch_frame_of(const uint8_t *bytes, size_t size)
{
    struct look l = {0};
    bool other = false; /* rbp is a register like all others */

    ZydisDecoderInit(&l.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t at = 0; at < size; at += l.i.length) {
        if (!decode(&l, bytes + at, size - at) || leaves(&l, at + l.i.length, size))
            return ETCH_FRAME_OPEN;
        l.by_bp |= sets_frame_pointer(&l);
        other |= writes_frame_pointer(&l) && !sets_frame_pointer(&l);
    }
    if (l.by_bp && other)
        return ETCH_FRAME_OPEN;
    for (size_t at = 0; at < size; at += l.i.length)
        if (!decode(&l, bytes + at, size - at) || takes_address(&l))
            return ETCH_FRAME_OPEN;
    return l.by_bp ? ETCH_FRAME_BY_SP_BP : ETCH_FRAME_BY_SP;
}
