/* SPDX-License-Identifier: MIT */
/* Operands to variables: registers and their parts, memory, numbers. */
#include "decoder/values/backward_lift.h"

uint32_t etch_lift_fresh(struct lift *l)
{
    struct origin origin = {.instruction = l->index, .why = l->why};

    if (!etch_array_push(&l->m->vars, (struct var){.reason = NO_VAR}) || !etch_array_push(&l->m->origins, origin)) {
        l->m->failed = true;
        return 0;
    }
    return (uint32_t)(l->m->vars.n - 1);
}

void etch_lift_root(struct lift *l, uint32_t var, uint64_t value, uint64_t known, enum etch_how_known how)
{
    struct root r = {.var = var, .how = (uint8_t)how, .value = value & known, .known = known};

    if (!etch_array_push(&l->m->roots, r))
        l->m->failed = true;
}

uint32_t etch_lift_constant(struct lift *l, uint64_t value)
{
    uint32_t var = etch_lift_fresh(l);

    etch_lift_root(l, var, value, ~(uint64_t)0, ETCH_HOW_CONSTANT);
    return var;
}

uint32_t etch_lift_op(struct lift *l, enum op_kind kind, unsigned width, unsigned shift, uint32_t a, uint32_t b,
                      uint32_t c)
{
    struct op op = {.kind = (uint8_t)kind, .width = (uint8_t)width, .shift = (uint8_t)shift, .in = {a, b, c}};

    op.out = etch_lift_fresh(l);
    if (!etch_array_push(&l->m->ops, op))
        l->m->failed = true;
    return op.out;
}

void etch_lift_equate(struct lift *l, uint32_t a, uint32_t b)
{
    struct op op = {.kind = OP_EXTRACT, .width = 64, .out = a, .in = {b, NO_VAR, NO_VAR}};

    if (a != b && !etch_array_push(&l->m->ops, op))
        l->m->failed = true;
}

/* An access that did not fault was to an address of a program: the kernel gives out no others unless asked by a hint
 * beyond them. */
#define USER_BITS 47u

void etch_lift_access(struct lift *l, struct access access)
{
    if (access.kind == ACCESS_READ || access.kind == ACCESS_WRITE || access.kind == ACCESS_WIDE)
        etch_lift_root(l, access.address, 0, ~etch_backward_mask(USER_BITS), ETCH_HOW_FLOW);
    access.instruction = l->index;
    access.ring = l->ring;
    access.frame = access.implicit ? l->own_push : l->at_frame;
    access.at_stack = access.implicit || l->at_stack;
    access.activation = l->activation;
    if (!etch_array_push(&l->m->accesses, access))
        l->m->failed = true;
}

uint32_t etch_lift_load(struct lift *l, uint32_t address, unsigned bytes, bool implicit)
{
    uint32_t value = etch_lift_fresh(l);

    if (bytes < 8)
        etch_lift_root(l, value, 0, ~etch_backward_mask(bytes * 8), ETCH_HOW_CONSTANT);
    etch_lift_access(l, (struct access){.kind = ACCESS_READ,
                                        .size = (uint8_t)bytes,
                                        .length = bytes,
                                        .address = address,
                                        .value = value,
                                        .implicit = implicit});
    return value;
}

void etch_lift_store(struct lift *l, uint32_t address, uint32_t value, unsigned bytes, bool implicit)
{
    etch_lift_access(l, (struct access){.kind = ACCESS_WRITE,
                                        .size = (uint8_t)bytes,
                                        .length = bytes,
                                        .address = address,
                                        .value = value,
                                        .implicit = implicit});
}

int etch_lift_general(ZydisRegister reg, unsigned *shift, unsigned *width)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
        return -1;
    *width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
    *shift = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH ? 8 : 0;
    return (int)(whole - ZYDIS_REGISTER_RAX);
}

int etch_lift_vector(ZydisRegister reg)
{
    if (reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_XMM15)
        return (int)(reg - ZYDIS_REGISTER_XMM0);
    if (reg >= ZYDIS_REGISTER_YMM0 && reg <= ZYDIS_REGISTER_YMM15)
        return (int)(reg - ZYDIS_REGISTER_YMM0);
    if (reg >= ZYDIS_REGISTER_ZMM0 && reg <= ZYDIS_REGISTER_ZMM15)
        return (int)(reg - ZYDIS_REGISTER_ZMM0);
    return -1;
}

static uint32_t whole_register(struct lift *l, ZydisRegister reg)
{
    unsigned shift, width;
    int r = etch_lift_general(reg, &shift, &width);

    if (r < 0)
        return etch_lift_fresh(l);
    return width == 64 ? l->now[r] : etch_lift_op(l, OP_EXTRACT, width, shift, l->now[r], NO_VAR, NO_VAR);
}

static uint32_t sum(struct lift *l, uint32_t a, uint32_t b)
{
    return a == NO_VAR ? b : b == NO_VAR ? a : etch_lift_op(l, OP_ADD, 64, 0, a, b, NO_VAR);
}

static uint32_t index_part(struct lift *l, const ZydisDecodedOperandMem *mem)
{
    uint32_t index = whole_register(l, mem->index);

    if (mem->scale <= 1)
        return index;
    return etch_lift_op(l, OP_MULTIPLY, 64, 0, index, etch_lift_constant(l, mem->scale), NO_VAR);
}

uint32_t etch_lift_address(struct lift *l, const ZydisDecodedOperand *o)
{
    const ZydisDecodedOperandMem *mem = &o->mem;
    uint32_t at = NO_VAR;
    uint64_t displacement = (uint64_t)mem->disp.value;

    l->at_frame = mem->index == ZYDIS_REGISTER_NONE && mem->segment != ZYDIS_REGISTER_FS &&
                  ((mem->base == ZYDIS_REGISTER_RSP && l->frame != ETCH_FRAME_OPEN) ||
                   (mem->base == ZYDIS_REGISTER_RBP && l->frame == ETCH_FRAME_BY_SP_BP));
    l->at_stack = mem->base == ZYDIS_REGISTER_RSP || mem->base == ZYDIS_REGISTER_RBP;
    if (mem->segment == ZYDIS_REGISTER_GS)
        return etch_lift_fresh(l);
    if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP)
        displacement += l->next;
    else if (mem->base != ZYDIS_REGISTER_NONE)
        at = whole_register(l, mem->base);
    if (mem->index != ZYDIS_REGISTER_NONE)
        at = sum(l, at, index_part(l, mem));
    if (displacement || at == NO_VAR)
        at = sum(l, at, etch_lift_constant(l, displacement));
    if (l->i.address_width == 32)
        at = etch_lift_op(l, OP_EXTRACT, 32, 0, at, NO_VAR, NO_VAR);
    return mem->segment == ZYDIS_REGISTER_FS ? sum(l, at, l->fs) : at;
}

uint32_t etch_lift_read(struct lift *l, unsigned k, unsigned width)
{
    const ZydisDecodedOperand *o = &l->o[k];
    uint64_t number;

    switch (o->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
        return whole_register(l, o->reg.value);
    case ZYDIS_OPERAND_TYPE_MEMORY:
        return etch_lift_load(l, etch_lift_address(l, o), o->size / 8, false);
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        number = o->imm.is_signed ? (uint64_t)o->imm.value.s : o->imm.value.u;
        return etch_lift_constant(l, number & etch_backward_mask(width));
    default:
        return etch_lift_fresh(l);
    }
}

void etch_lift_write_at(struct lift *l, unsigned k, uint32_t address, uint32_t value)
{
    const ZydisDecodedOperand *o = &l->o[k];
    unsigned shift, width;
    int r;

    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        etch_lift_store(l, address, value, o->size / 8, false);
        return;
    }
    r = etch_lift_general(o->reg.value, &shift, &width);
    if (r < 0)
        return;
    l->now[r] = width >= 32 ? value : etch_lift_op(l, OP_INSERT, width, shift, l->now[r], value, NO_VAR);
}

void etch_lift_write(struct lift *l, unsigned k, uint32_t value)
{
    const ZydisDecodedOperand *o = &l->o[k];

    etch_lift_write_at(l, k, o->type == ZYDIS_OPERAND_TYPE_MEMORY ? etch_lift_address(l, o) : NO_VAR, value);
}
