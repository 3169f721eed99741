/* SPDX-License-Identifier: MIT */
/* See unwind_rules.h. */
#include "binary/unwind_rules.h"

#include <dwarf.h>

#define OPERATIONS_MAX 32u

enum { SP = ETCH_UNWIND_SP, PC = ETCH_UNWIND_PC };

static void set(struct etch_unwind_frame *f, unsigned number, uint64_t value)
{
    f->r[number] = value;
    f->known |= 1u << number;
}

static bool get(const struct etch_unwind_frame *f, uint64_t number, uint64_t *value)
{
    if (number > PC || !(f->known >> number & 1))
        return false;
    *value = f->r[number];
    return true;
}

/* ---- Expressions of the tables ---- */

struct machine {
    const struct etch_unwind_memory *memory;
    const struct etch_unwind_frame *frame;
    const uint64_t *cfa;
    uint64_t stack[8];
    size_t n;
    bool is_value; /* what is found is the value itself, not where it is */
};

static bool push(struct machine *m, uint64_t v)
{
    if (m->n == sizeof(m->stack) / sizeof(m->stack[0]))
        return false;
    m->stack[m->n++] = v;
    return true;
}

static bool push_register(struct machine *m, uint64_t number, uint64_t offset)
{
    uint64_t v;

    return get(m->frame, number, &v) && push(m, v + offset);
}

static bool operate_on_two(struct machine *m, uint8_t atom)
{
    uint64_t a, b;

    if (m->n < 2)
        return false;
    b = m->stack[--m->n];
    a = m->stack[--m->n];
    switch (atom) {
    case DW_OP_plus:
        return push(m, a + b);
    case DW_OP_minus:
        return push(m, a - b);
    case DW_OP_and:
        return push(m, a & b);
    case DW_OP_shl:
        return push(m, b < 64 ? a << b : 0);
    case DW_OP_ge:
        return push(m, (int64_t)a >= (int64_t)b);
    default:
        return false;
    }
}

/* The few operations that compilers and libc's assembly put into unwind tables; any other is an end. */
static bool operate(struct machine *m, const Dwarf_Op *op)
{
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return push_register(m, op->atom - DW_OP_breg0, op->number);
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        return push(m, op->atom - DW_OP_lit0);
    switch (op->atom) {
    case DW_OP_bregx:
        return push_register(m, op->number, op->number2);
    case DW_OP_regx:
        m->is_value = true;
        return push_register(m, op->number, 0);
    case DW_OP_call_frame_cfa:
        return m->cfa && push(m, *m->cfa);
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
        return push(m, op->number);
    case DW_OP_plus_uconst:
        return push(m, op->number) && operate_on_two(m, DW_OP_plus);
    case DW_OP_deref:
        return m->n && m->memory->read(m->memory->context, m->stack[m->n - 1], &m->stack[m->n - 1]);
    case DW_OP_stack_value:
        m->is_value = true;
        return true;
    default:
        return operate_on_two(m, op->atom);
    }
}

static bool evaluate(struct machine *m, const Dwarf_Op *ops, size_t n, uint64_t *result)
{
    if (!n || n > OPERATIONS_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!operate(m, &ops[i]))
            return false;
    if (m->n != 1)
        return false;
    *result = m->stack[0];
    return true;
}

/* ---- The caller's registers ---- */

/* The caller's value of a register; where it cannot be told it is not known there. */
static void restore(const struct etch_unwind_memory *memory, const struct etch_unwind_frame *inner, uint64_t cfa,
                    Dwarf_Frame *rules, unsigned number, struct etch_unwind_frame *outer)
{
    struct machine m = {.memory = memory, .frame = inner, .cfa = &cfa};
    Dwarf_Op space[3], *ops;
    uint64_t found;
    size_t n;

    if (dwarf_frame_register(rules, (int)number, space, &ops, &n) != 0)
        return;
    if (!n && !ops) { /* it is the same there */
        if (get(inner, number, &found))
            set(outer, number, found);
        return;
    }
    if (evaluate(&m, ops, n, &found) && (m.is_value || memory->read(memory->context, found, &found)))
        set(outer, number, found);
}

bool etch_unwind_rules_apply(Dwarf_Frame *rules, const struct etch_unwind_memory *memory, struct etch_unwind_frame *f)
{
    struct machine m = {.memory = memory, .frame = f};
    struct etch_unwind_frame outer = {0};
    Dwarf_Op *ops;
    uint64_t cfa;
    bool signal;
    size_t n;

    /* Behind a signal's frame there is no call. */
    if (dwarf_frame_info(rules, NULL, NULL, &signal) != PC || signal)
        return false;
    if (dwarf_frame_cfa(rules, &ops, &n) != 0 || !evaluate(&m, ops, n, &cfa) || cfa <= f->r[SP])
        return false;
    for (unsigned i = 0; i <= PC; i++)
        restore(memory, f, cfa, rules, i, &outer);
    set(&outer, SP, cfa);
    *f = outer;
    return f->known >> PC & 1;
}
