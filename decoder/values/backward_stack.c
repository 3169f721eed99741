/* SPDX-License-Identifier: MIT */
/* Instructions that move the stack pointer, branches, system calls, and instructions on strings. */
#include "decoder/values/backward_lift.h"

#include <string.h>

enum { AX = 0, CX = 1, BP = 5, SI = 6, DI = 7, R11 = 11 };

/* ---- The stack ---- */

static void move_stack(struct lift *l, enum op_kind kind, uint64_t bytes)
{
    l->now[R_SP] = etch_lift_op(l, kind, 64, 0, l->now[R_SP], etch_lift_constant(l, bytes), NO_VAR);
}

static void push(struct lift *l, uint32_t value)
{
    move_stack(l, OP_SUB, 8);
    etch_lift_store(l, l->now[R_SP], value, 8, true);
}

static uint32_t pop(struct lift *l)
{
    uint32_t value = etch_lift_load(l, l->now[R_SP], 8, true);

    move_stack(l, OP_ADD, 8);
    return value;
}

/* Only to save a register that functions keep; the place of another may be a variable whose address is taken. */
static bool saves_kept(const struct lift *l)
{
    unsigned shift, width;
    int r = l->o[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? etch_lift_general(l->o[0].reg.value, &shift, &width) : -1;

    return r == 3 /* bx */ || r == BP || r >= 12;
}

static bool lift_push(struct lift *l)
{
    unsigned shift, width;

    if (l->i.operand_width != 64 ||
        (l->o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && etch_lift_general(l->o[0].reg.value, &shift, &width) < 0))
        return false;
    l->own_push |= saves_kept(l);
    push(l, etch_lift_read(l, 0, 64));
    return true;
}

static bool lift_pop(struct lift *l)
{
    unsigned shift, width;
    uint32_t value;

    if (l->i.operand_width != 64 || l->o[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        etch_lift_general(l->o[0].reg.value, &shift, &width) < 0)
        return false;
    l->own_push |= saves_kept(l);
    value = pop(l);
    etch_lift_write(l, 0, value);
    return true;
}

static void leave(struct lift *l)
{
    l->now[R_SP] = l->now[BP];
    l->own_push = true;
    l->now[BP] = pop(l);
}

/* ---- Branches ---- */

/* The next instruction shows where the thread went. */
static void went(struct lift *l, uint32_t target)
{
    if (l->followed)
        etch_lift_root(l, target, l->to, ~(uint64_t)0, ETCH_HOW_FLOW);
}

static bool is_near(const struct lift *l)
{
    return l->i.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR || l->i.meta.branch_type == ZYDIS_BRANCH_TYPE_SHORT;
}

static bool lift_target(struct lift *l)
{
    if (!is_near(l) || (l->o[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE && l->o[0].size != 64))
        return false;
    if (l->o[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        went(l, etch_lift_read(l, 0, 64));
    return true;
}

void etch_lift_lose_calls(struct lift *l)
{
    l->depth = 0;
    l->activation = ++l->activations;
}

/* Calls that are nested too deep are forgotten from the outside. */
void etch_lift_remember_call(struct lift *l, uint64_t next)
{
    struct pending_call *c;

    if (l->depth == DEEPEST) {
        memmove(l->calls, l->calls + 1, (DEEPEST - 1) * sizeof(*l->calls));
        l->depth--;
    }
    c = &l->calls[l->depth++];
    c->next = next;
    memcpy(c->registers, l->now, sizeof(c->registers));
    c->activation = l->activation;
    l->activation = ++l->activations;
}

/* A call that returned behind itself left the stack pointer as it was. */
static void match_call(struct lift *l)
{
    if (!l->depth) {
        etch_lift_lose_calls(l);
        return;
    }
    l->activation = l->calls[--l->depth].activation;
    if (!l->followed && !l->calls[l->depth].next)
        return; /* to the code that had called it */
    if (l->followed && l->calls[l->depth].next == l->to)
        etch_lift_equate(l, l->now[R_SP], l->calls[l->depth].registers[R_SP]);
    else
        etch_lift_lose_calls(l);
}

static bool lift_call(struct lift *l)
{
    if (!lift_target(l))
        return false;
    etch_lift_remember_call(l, l->next);
    l->own_push = true;
    push(l, etch_lift_constant(l, l->next));
    return true;
}

static bool lift_return(struct lift *l)
{
    if (!is_near(l))
        return false;
    l->own_push = true;
    went(l, pop(l));
    if (l->i.operand_count_visible && l->o[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        move_stack(l, OP_ADD, l->o[0].imm.value.u & 0xffff), etch_lift_lose_calls(l);
    else
        match_call(l);
    return true;
}

static bool lift_conditional(struct lift *l)
{
    uint64_t target;
    bool by_flags = (l->i.opcode & 0xf0) == 0x70 || (l->i.opcode & 0xf0) == 0x80;

    if (!by_flags || l->o[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return false;
    target = l->next + (uint64_t)l->o[0].imm.value.s;
    if (l->followed && target != l->next)
        etch_lift_root(l, etch_lift_op(l, OP_CONDITION, 64, l->i.opcode & 0xf, l->now[R_FLAGS], NO_VAR, NO_VAR),
                       l->to == target, ~(uint64_t)0, ETCH_HOW_FLOW);
    return true;
}

/* ---- System calls ---- */

static void system_call(struct lift *l)
{
    etch_lift_access(l, (struct access){.kind = ACCESS_SYSCALL, .address = NO_VAR, .value = l->now[AX]});
    l->why = ETCH_WHY_SYSTEM_CALL;
    l->now[AX] = etch_lift_fresh(l);
    l->now[CX] = etch_lift_constant(l, l->next);
    l->now[R11] = etch_lift_fresh(l);
    l->now[R_FLAGS] = etch_lift_fresh(l);
    l->why = ETCH_WHY_INSTRUCTION;
}

/* ---- Strings ---- */

static bool is_repeated(const struct lift *l)
{
    return l->i.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* Where a pointer is behind a string instruction. */
static uint32_t moved(struct lift *l, uint32_t pointer, unsigned bytes)
{
    uint32_t way = etch_lift_constant(l, bytes);

    if (!l->forward_only)
        return etch_lift_fresh(l);
    if (is_repeated(l))
        way = etch_lift_op(l, OP_MULTIPLY, 64, 0, l->now[CX], way, NO_VAR);
    return etch_lift_op(l, OP_ADD, 64, 0, pointer, way, NO_VAR);
}

static bool lift_string(struct lift *l, bool copies)
{
    unsigned bytes = l->i.operand_width / 8;
    uint32_t before = l->now[DI];

    if (l->i.address_width != 64 || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
        return false;
    l->now[DI] = moved(l, before, bytes);
    if (copies)
        l->now[SI] = moved(l, l->now[SI], bytes);
    if (is_repeated(l))
        l->now[CX] = etch_lift_constant(l, 0);
    etch_lift_access(
        l, (struct access){.kind = ACCESS_RANGE, .size = (uint8_t)bytes, .address = before, .value = l->now[DI]});
    return true;
}

bool etch_lift_stack(struct lift *l)
{
    switch (l->i.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        return lift_push(l);
    case ZYDIS_MNEMONIC_POP:
        return lift_pop(l);
    case ZYDIS_MNEMONIC_LEAVE:
        if (l->i.operand_width != 64)
            return false;
        leave(l);
        return true;
    case ZYDIS_MNEMONIC_CALL:
        return lift_call(l);
    case ZYDIS_MNEMONIC_RET:
        return lift_return(l);
    case ZYDIS_MNEMONIC_JMP:
        return lift_target(l);
    case ZYDIS_MNEMONIC_SYSCALL:
        system_call(l);
        return true;
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
        return lift_string(l, false);
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSQ:
        return lift_string(l, true);
    case ZYDIS_MNEMONIC_MOVSD: /* also the name of a move through vector registers */
        return l->o[0].type == ZYDIS_OPERAND_TYPE_MEMORY && l->o[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
               lift_string(l, true);
    default:
        return l->i.meta.category == ZYDIS_CATEGORY_COND_BR && lift_conditional(l);
    }
}
