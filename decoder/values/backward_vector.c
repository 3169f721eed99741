/* SPDX-License-Identifier: MIT */
/* Copies through vector registers: pointers and numbers travel there without being computed with. Only the lower 128
 * bits of a register are followed, as two halves. */
#include "decoder/values/backward_lift.h"

static bool is_vector(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value >= ZYDIS_REGISTER_XMM0 &&
           o->reg.value <= ZYDIS_REGISTER_XMM15;
}

static bool is_memory(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type == ZYDIS_MEMOP_TYPE_MEM;
}

static uint32_t *half(struct lift *l, const ZydisDecodedOperand *o, unsigned upper)
{
    return &l->now[R_VECTOR + 2 * etch_lift_vector(o->reg.value) + (int)upper];
}

static uint32_t plus_eight(struct lift *l, uint32_t address)
{
    return etch_lift_op(l, OP_ADD, 64, 0, address, etch_lift_constant(l, 8), NO_VAR);
}

/* 128 bits. */
static bool move_whole(struct lift *l)
{
    const ZydisDecodedOperand *to = &l->o[0], *from = &l->o[1];
    uint32_t address;

    if (is_vector(to) && is_vector(from)) {
        uint32_t lower = *half(l, from, 0), upper = *half(l, from, 1);

        *half(l, to, 0) = lower;
        *half(l, to, 1) = upper;
    } else if (is_vector(to) && is_memory(from) && from->size == 128) {
        address = etch_lift_address(l, from);
        *half(l, to, 0) = etch_lift_load(l, address, 8, false);
        *half(l, to, 1) = etch_lift_load(l, plus_eight(l, address), 8, false);
    } else if (is_memory(to) && is_vector(from) && to->size == 128) {
        address = etch_lift_address(l, to);
        etch_lift_store(l, address, *half(l, from, 0), 8, false);
        etch_lift_store(l, plus_eight(l, address), *half(l, from, 1), 8, false);
    } else
        return false;
    return true;
}

static uint32_t lower_bits(struct lift *l, uint32_t var, unsigned width)
{
    return width == 64 ? var : etch_lift_op(l, OP_EXTRACT, width, 0, var, NO_VAR, NO_VAR);
}

/* `width` bits; the rest of a register becomes zero. */
static bool move_scalar(struct lift *l, unsigned width)
{
    const ZydisDecodedOperand *to = &l->o[0], *from = &l->o[1];
    uint32_t value;
    unsigned shift, w;

    if (is_vector(from))
        value = lower_bits(l, *half(l, from, 0), width);
    else if ((is_memory(from) && from->size == width) ||
             (from->type == ZYDIS_OPERAND_TYPE_REGISTER && etch_lift_general(from->reg.value, &shift, &w) >= 0 &&
              w == width))
        value = etch_lift_read(l, 1, width);
    else
        return false;
    if (is_vector(to)) {
        *half(l, to, 0) = value;
        *half(l, to, 1) = etch_lift_constant(l, 0);
    } else if (is_memory(to) || (to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
                                 etch_lift_general(to->reg.value, &shift, &w) >= 0 && w == width))
        etch_lift_write(l, 0, value);
    else
        return false;
    return true;
}

/* Between registers, movss and movsd leave the rest alone. */
static bool move_float(struct lift *l, unsigned width)
{
    const ZydisDecodedOperand *to = &l->o[0], *from = &l->o[1];

    if (!is_vector(to) || !is_vector(from))
        return move_scalar(l, width);
    if (width == 64)
        *half(l, to, 0) = *half(l, from, 0);
    else
        *half(l, to, 0) =
            etch_lift_op(l, OP_INSERT, width, 0, *half(l, to, 0), lower_bits(l, *half(l, from, 0), width), NO_VAR);
    return true;
}

/* One half from or to memory. */
static bool move_half(struct lift *l, unsigned upper)
{
    const ZydisDecodedOperand *to = &l->o[0], *from = &l->o[1];

    if (is_vector(to) && is_memory(from) && from->size == 64)
        *half(l, to, upper) = etch_lift_read(l, 1, 64);
    else if (is_memory(to) && to->size == 64 && is_vector(from))
        etch_lift_write(l, 0, *half(l, from, upper));
    else
        return false;
    return true;
}

/* The lower half of the source becomes the upper half. */
static bool join(struct lift *l)
{
    if (!is_vector(&l->o[0]) || !is_vector(&l->o[1]))
        return false;
    *half(l, &l->o[0], 1) = *half(l, &l->o[1], 0);
    return true;
}

static bool exclusive_or(struct lift *l)
{
    if (!is_vector(&l->o[0]) || !is_vector(&l->o[1]))
        return false;
    for (unsigned u = 0; u < 2; u++) {
        uint32_t a = *half(l, &l->o[0], u), b = *half(l, &l->o[1], u);

        *half(l, &l->o[0], u) = a == b ? etch_lift_constant(l, 0) : etch_lift_op(l, OP_XOR, 64, 0, a, b, NO_VAR);
    }
    return true;
}

bool etch_lift_moves(struct lift *l)
{
    if (l->i.operand_count_visible != 2)
        return false;
    switch (l->i.mnemonic) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVUPS:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQU:
        return move_whole(l);
    case ZYDIS_MNEMONIC_MOVSS:
        return move_float(l, 32);
    case ZYDIS_MNEMONIC_MOVSD:
        return move_float(l, 64);
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_VMOVD:
        return move_scalar(l, 32);
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_VMOVQ:
        return move_scalar(l, 64);
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVLPD:
        return move_half(l, 0);
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVHPD:
        return move_half(l, 1);
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
    case ZYDIS_MNEMONIC_MOVLHPS:
        return join(l);
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
        return exclusive_or(l);
    default:
        return false;
    }
}
