/* SPDX-License-Identifier: MIT */
/* Instructions on general registers and memory. */
#include "decoder/values/backward_lift.h"

enum { AX = 0, DX = 2, EQUAL = 4 };

/* An operand that is read, and may be written afterwards. */
struct place {
    uint32_t address, value;
};

static struct place open_place(struct lift *l, unsigned k)
{
    struct place p = {.address = NO_VAR};

    if (l->o[k].type != ZYDIS_OPERAND_TYPE_MEMORY) {
        p.value = etch_lift_read(l, k, l->o[k].size);
        return p;
    }
    p.address = etch_lift_address(l, &l->o[k]);
    p.value = etch_lift_load(l, p.address, l->o[k].size / 8, false);
    return p;
}

static uint32_t part(struct lift *l, uint32_t var, unsigned width)
{
    return width == 64 ? var : etch_lift_op(l, OP_EXTRACT, width, 0, var, NO_VAR, NO_VAR);
}

static uint32_t carry(struct lift *l)
{
    return part(l, l->now[R_FLAGS], 1);
}

static void set_flags(struct lift *l, enum op_kind kind, unsigned width, uint32_t a, uint32_t b, uint32_t result)
{
    l->now[R_FLAGS] = etch_lift_op(l, kind, width, 0, a, b, result);
}

static void forget_flags(struct lift *l)
{
    l->now[R_FLAGS] = etch_lift_fresh(l);
}

/* ---- Two operands ---- */

static void two(struct lift *l, enum op_kind kind, enum op_kind flags, bool keep)
{
    unsigned w = l->o[0].size;
    struct place p = open_place(l, 0);
    uint32_t b = etch_lift_read(l, 1, w), r;

    if (kind == OP_AND && p.value != b && l->o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        l->o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && l->o[0].reg.value == l->o[1].reg.value)
        b = p.value;
    r = (kind == OP_AND || kind == OP_OR) && p.value == b ? b : etch_lift_op(l, kind, w, 0, p.value, b, NO_VAR);
    set_flags(l, flags, w, p.value, b, r);
    if (keep)
        etch_lift_write_at(l, 0, p.address, r);
}

/* xor or sub of a register with itself: the usual way to make a zero. */
static bool is_zeroing(const struct lift *l)
{
    return l->o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && l->o[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           l->o[0].reg.value == l->o[1].reg.value;
}

static void zero(struct lift *l)
{
    uint32_t r = etch_lift_constant(l, 0);

    set_flags(l, OP_FLAGS_LOGIC, l->o[0].size, NO_VAR, NO_VAR, r);
    etch_lift_write(l, 0, r);
}

static void with_carry(struct lift *l, enum op_kind kind)
{
    unsigned w = l->o[0].size;
    struct place p = open_place(l, 0);
    uint32_t b = etch_lift_read(l, 1, w), c = carry(l), r;

    r = kind == OP_SUB && is_zeroing(l) ? etch_lift_constant(l, 0) : etch_lift_op(l, kind, w, 0, p.value, b, NO_VAR);
    r = etch_lift_op(l, kind, w, 0, r, c, NO_VAR);
    forget_flags(l);
    etch_lift_write_at(l, 0, p.address, r);
}

static bool two_operands(struct lift *l)
{
    switch (l->i.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
        two(l, OP_ADD, OP_FLAGS_ADD, true);
        return true;
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_XOR:
        if (is_zeroing(l))
            zero(l);
        else if (l->i.mnemonic == ZYDIS_MNEMONIC_SUB)
            two(l, OP_SUB, OP_FLAGS_SUB, true);
        else
            two(l, OP_XOR, OP_FLAGS_LOGIC, true);
        return true;
    case ZYDIS_MNEMONIC_CMP:
        two(l, OP_SUB, OP_FLAGS_SUB, false);
        return true;
    case ZYDIS_MNEMONIC_AND:
        two(l, OP_AND, OP_FLAGS_LOGIC, true);
        return true;
    case ZYDIS_MNEMONIC_TEST:
        two(l, OP_AND, OP_FLAGS_LOGIC, false);
        return true;
    case ZYDIS_MNEMONIC_OR:
        two(l, OP_OR, OP_FLAGS_LOGIC, true);
        return true;
    case ZYDIS_MNEMONIC_ADC:
        with_carry(l, OP_ADD);
        return true;
    case ZYDIS_MNEMONIC_SBB:
        with_carry(l, OP_SUB);
        return true;
    default:
        return false;
    }
}

/* ---- One operand ---- */

/* Increment and decrement leave the carry flag alone. */
static void step(struct lift *l, enum op_kind kind, enum op_kind flags)
{
    unsigned w = l->o[0].size;
    struct place p = open_place(l, 0);
    uint32_t one = etch_lift_constant(l, 1), c = carry(l), r = etch_lift_op(l, kind, w, 0, p.value, one, NO_VAR);

    set_flags(l, flags, w, p.value, one, r);
    l->now[R_FLAGS] = etch_lift_op(l, OP_INSERT, 1, 0, l->now[R_FLAGS], c, NO_VAR);
    etch_lift_write_at(l, 0, p.address, r);
}

static void negate(struct lift *l)
{
    unsigned w = l->o[0].size;
    struct place p = open_place(l, 0);
    uint32_t nought = etch_lift_constant(l, 0), r = etch_lift_op(l, OP_SUB, w, 0, nought, p.value, NO_VAR);

    set_flags(l, OP_FLAGS_SUB, w, nought, p.value, r);
    etch_lift_write_at(l, 0, p.address, r);
}

static void invert(struct lift *l)
{
    unsigned w = l->o[0].size;
    struct place p = open_place(l, 0);
    uint32_t ones = etch_lift_constant(l, etch_backward_mask(w));

    etch_lift_write_at(l, 0, p.address, etch_lift_op(l, OP_XOR, w, 0, p.value, ones, NO_VAR));
}

static bool swap_bytes(struct lift *l)
{
    unsigned w = l->o[0].size;

    if (w < 32)
        return false;
    etch_lift_write(l, 0, etch_lift_op(l, OP_SWAP, w, 0, etch_lift_read(l, 0, w), NO_VAR, NO_VAR));
    return true;
}

static bool one_operand(struct lift *l)
{
    switch (l->i.mnemonic) {
    case ZYDIS_MNEMONIC_INC:
        step(l, OP_ADD, OP_FLAGS_ADD);
        return true;
    case ZYDIS_MNEMONIC_DEC:
        step(l, OP_SUB, OP_FLAGS_SUB);
        return true;
    case ZYDIS_MNEMONIC_NEG:
        negate(l);
        return true;
    case ZYDIS_MNEMONIC_NOT:
        invert(l);
        return true;
    case ZYDIS_MNEMONIC_BSWAP:
        return swap_bytes(l);
    default:
        return false;
    }
}

/* ---- Shifts ---- */

static bool shift(struct lift *l, enum op_kind kind)
{
    unsigned w = l->o[0].size, most = w == 64 ? 0x3f : 0x1f;
    const ZydisDecodedOperand *by = &l->o[1];
    struct place p;
    uint32_t n, r;
    bool certain;

    if (by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE && by->type != ZYDIS_OPERAND_TYPE_REGISTER)
        return false;
    certain = by->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && (by->imm.value.u & most);
    p = open_place(l, 0);
    n = etch_lift_read(l, 1, 8);
    if (l->i.mnemonic == ZYDIS_MNEMONIC_ROR)
        n = etch_lift_op(l, OP_SUB, 8, 0, etch_lift_constant(l, w), n, NO_VAR);
    r = etch_lift_op(l, kind, w, 0, p.value, n, NO_VAR);
    if (certain && kind != OP_ROTATE_LEFT)
        set_flags(l, OP_FLAGS_RESULT, w, NO_VAR, NO_VAR, r);
    else
        forget_flags(l);
    etch_lift_write_at(l, 0, p.address, r);
    return true;
}

static bool shifts(struct lift *l)
{
    switch (l->i.mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
        return shift(l, OP_SHIFT_LEFT);
    case ZYDIS_MNEMONIC_SHR:
        return shift(l, OP_SHIFT_RIGHT);
    case ZYDIS_MNEMONIC_SAR:
        return shift(l, OP_SHIFT_SIGNED);
    case ZYDIS_MNEMONIC_ROL:
        return shift(l, OP_ROTATE_LEFT);
    case ZYDIS_MNEMONIC_ROR: /* as a rotation to the left by width - n; the width is a power of 2 */
        return l->o[0].size >= 32 && shift(l, OP_ROTATE_LEFT);
    default:
        return false;
    }
}

/* ---- Products and quotients ---- */

static bool multiply_wide(struct lift *l, enum op_kind high)
{
    unsigned w = l->o[0].size;
    uint32_t a, b, lower;

    if (w < 32)
        return false;
    b = etch_lift_read(l, 0, w);
    a = part(l, l->now[AX], w);
    lower = etch_lift_op(l, OP_MULTIPLY, w, 0, a, b, NO_VAR);
    l->now[DX] = etch_lift_op(l, high, w, 0, a, b, NO_VAR);
    l->now[AX] = lower;
    forget_flags(l);
    return true;
}

static bool multiply(struct lift *l)
{
    unsigned w = l->o[0].size;
    uint32_t a, b;

    if (l->i.operand_count_visible == 1)
        return multiply_wide(l, OP_HIGH_SIGNED);
    a = etch_lift_read(l, l->i.operand_count_visible == 3 ? 1 : 0, w);
    b = etch_lift_read(l, l->i.operand_count_visible == 3 ? 2 : 1, w);
    forget_flags(l);
    etch_lift_write(l, 0, etch_lift_op(l, OP_MULTIPLY, w, 0, a, b, NO_VAR));
    return true;
}

static bool divide(struct lift *l, enum op_kind quotient, enum op_kind remainder)
{
    unsigned w = l->o[0].size;
    uint32_t high, low, by;

    if (w < 32)
        return false;
    by = etch_lift_read(l, 0, w);
    high = part(l, l->now[DX], w);
    low = part(l, l->now[AX], w);
    l->now[AX] = etch_lift_op(l, quotient, w, 0, high, low, by);
    l->now[DX] = etch_lift_op(l, remainder, w, 0, high, low, by);
    forget_flags(l);
    return true;
}

static uint32_t extended(struct lift *l, uint32_t var, unsigned from, unsigned to)
{
    return etch_lift_op(l, OP_EXTEND, to, from, var, NO_VAR, NO_VAR);
}

/* The sign of ax in all bits of dx. */
static void sign_to_dx(struct lift *l, unsigned w)
{
    uint32_t n = etch_lift_constant(l, w - 1);

    l->now[DX] = etch_lift_op(l, OP_SHIFT_SIGNED, w, 0, part(l, l->now[AX], w), n, NO_VAR);
}

static bool products(struct lift *l)
{
    switch (l->i.mnemonic) {
    case ZYDIS_MNEMONIC_IMUL:
        return multiply(l);
    case ZYDIS_MNEMONIC_MUL:
        return multiply_wide(l, OP_HIGH_UNSIGNED);
    case ZYDIS_MNEMONIC_DIV:
        return divide(l, OP_QUOTIENT_UNSIGNED, OP_REMAINDER_UNSIGNED);
    case ZYDIS_MNEMONIC_IDIV:
        return divide(l, OP_QUOTIENT_SIGNED, OP_REMAINDER_SIGNED);
    case ZYDIS_MNEMONIC_CWDE:
        l->now[AX] = extended(l, l->now[AX], 16, 32);
        return true;
    case ZYDIS_MNEMONIC_CDQE:
        l->now[AX] = extended(l, l->now[AX], 32, 64);
        return true;
    case ZYDIS_MNEMONIC_CDQ:
        sign_to_dx(l, 32);
        return true;
    case ZYDIS_MNEMONIC_CQO:
        sign_to_dx(l, 64);
        return true;
    default:
        return false;
    }
}

/* ---- Copies ---- */

static void exchange(struct lift *l)
{
    struct place p = open_place(l, 0), q = open_place(l, 1);

    etch_lift_write_at(l, 1, q.address, p.value);
    etch_lift_write_at(l, 0, p.address, q.value);
}

static void exchange_add(struct lift *l)
{
    unsigned w = l->o[0].size;
    struct place p = open_place(l, 0);
    uint32_t b = etch_lift_read(l, 1, w), r = etch_lift_op(l, OP_ADD, w, 0, p.value, b, NO_VAR);

    set_flags(l, OP_FLAGS_ADD, w, p.value, b, r);
    etch_lift_write(l, 1, p.value);
    etch_lift_write_at(l, 0, p.address, r);
}

static bool compare_exchange(struct lift *l)
{
    unsigned w = l->o[0].size;
    struct place p;
    uint32_t ax, b, r, same;

    if (l->o[0].type != ZYDIS_OPERAND_TYPE_MEMORY || w < 32)
        return false;
    ax = part(l, l->now[AX], w);
    p = open_place(l, 0);
    b = etch_lift_read(l, 1, w);
    r = etch_lift_op(l, OP_SUB, w, 0, ax, p.value, NO_VAR);
    set_flags(l, OP_FLAGS_SUB, w, ax, p.value, r);
    same = etch_lift_op(l, OP_CONDITION, 64, EQUAL, l->now[R_FLAGS], NO_VAR, NO_VAR);
    etch_lift_write_at(l, 0, p.address, etch_lift_op(l, OP_SELECT, w, 0, same, b, p.value));
    l->now[AX] = etch_lift_op(l, OP_SELECT, 64, 0, same, l->now[AX], p.value);
    return true;
}

static uint32_t condition(struct lift *l)
{
    return etch_lift_op(l, OP_CONDITION, 64, l->i.opcode & 0xf, l->now[R_FLAGS], NO_VAR, NO_VAR);
}

static void move_if(struct lift *l)
{
    unsigned w = l->o[0].size;
    uint32_t b = etch_lift_read(l, 1, w), a = etch_lift_read(l, 0, w), c = condition(l);

    etch_lift_write(l, 0, etch_lift_op(l, OP_SELECT, w, 0, c, b, a));
}

static bool copies(struct lift *l)
{
    unsigned w = l->o[0].size;

    switch (l->i.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_MOVZX:
        etch_lift_write(l, 0, etch_lift_read(l, 1, w));
        return true;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
        etch_lift_write(l, 0, extended(l, etch_lift_read(l, 1, w), l->o[1].size, w));
        return true;
    case ZYDIS_MNEMONIC_LEA:
        etch_lift_write(l, 0, part(l, etch_lift_address(l, &l->o[1]), w));
        return true;
    case ZYDIS_MNEMONIC_XCHG:
        exchange(l);
        return true;
    case ZYDIS_MNEMONIC_XADD:
        exchange_add(l);
        return true;
    case ZYDIS_MNEMONIC_CMPXCHG:
        return compare_exchange(l);
    default:
        break;
    }
    if (l->i.meta.category == ZYDIS_CATEGORY_CMOV)
        move_if(l);
    else if (l->i.meta.category == ZYDIS_CATEGORY_SETCC)
        etch_lift_write(l, 0, condition(l));
    else
        return false;
    return true;
}

/* Whether all operands are general registers, numbers, and memory of at most eight bytes. */
static bool is_plain(const struct lift *l)
{
    unsigned shift, width;

    if (!l->i.operand_count_visible)
        return l->i.operand_count > 0;
    for (unsigned k = 0; k < l->i.operand_count_visible; k++) {
        const ZydisDecodedOperand *o = &l->o[k];

        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && etch_lift_general(o->reg.value, &shift, &width) < 0)
            return false;
        if (o->type == ZYDIS_OPERAND_TYPE_POINTER)
            return false;
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            ((o->mem.type != ZYDIS_MEMOP_TYPE_MEM && o->mem.type != ZYDIS_MEMOP_TYPE_AGEN) ||
             (o->mem.type == ZYDIS_MEMOP_TYPE_MEM && o->size != 8 && o->size != 16 && o->size != 32 && o->size != 64)))
            return false;
    }
    return true;
}

bool etch_lift_integer(struct lift *l)
{
    return is_plain(l) && (copies(l) || two_operands(l) || one_operand(l) || shifts(l) || products(l));
}
