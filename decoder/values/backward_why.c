/* SPDX-License-Identifier: MIT */
/* Why a value is unknown: the walk from it to earlier instructions, up to the first thing that gave no value. */
#include "decoder/values/backward_model.h"

#define LONGEST 100000u /* steps of a walk */

/* A place of the walk: a variable, or the access that gave it its value. */
struct walk {
    const struct model *m;
    uint32_t var;
    uint32_t instruction;
    uint32_t store; /* the earliest store to an unknown place that was met */
};

static bool is_unknown(const struct model *m, uint32_t var, uint64_t mask)
{
    return var != NO_VAR && (m->vars.v[var].known & mask) != mask;
}

static uint64_t operand_mask(const struct op *o, unsigned k)
{
    switch (o->kind) {
    case OP_EXTRACT:
        return etch_backward_mask(o->width) << o->shift;
    case OP_INSERT:
        return k ? etch_backward_mask(o->width) : ~(uint64_t)0;
    case OP_EXTEND:
        return etch_backward_mask(o->shift);
    case OP_CONDITION:
        return FLAG_ALL;
    default:
        return etch_backward_mask(o->width);
    }
}

/* Returns whether an operand is unknown; the walk goes on there. */
static bool through_operation(struct walk *w, uint32_t op)
{
    const struct op *o = &w->m->ops.v[op];

    for (unsigned k = 0; k < 3; k++)
        if (o->in[k] != w->var && is_unknown(w->m, o->in[k], operand_mask(o, k))) {
            w->var = o->in[k];
            return true;
        }
    return false;
}

static enum etch_why_unknown why_broken(const struct model *m, uint32_t breaker)
{
    switch (m->accesses.v[breaker].kind) {
    case ACCESS_ALL:
        return ETCH_WHY_GAP;
    case ACCESS_SYSCALL:
        return ETCH_WHY_SYSTEM_CALL;
    case ACCESS_UNSEEN:
        return ETCH_WHY_CALL_WROTE;
    default:
        return ETCH_WHY_STORE_WROTE;
    }
}

/* Follows a byte of a located reading to the write that it is from. Returns ETCH_WHY_COUNT to go on with w->var. */
static enum etch_why_unknown through_memory(struct walk *w, uint32_t access)
{
    const struct model *m = w->m;
    const struct access *a = &m->accesses.v[access];
    uint32_t byte = (uint32_t)__builtin_ctzll(~m->vars.v[a->value].known) / 8, breaker, after = access;
    uint64_t address = a->at + byte;
    size_t first = etch_backward_first_cell(m, address), i = first;

    if (a->memory == ETCH_MEMORY_SHARED)
        return ETCH_WHY_SHARED;
    while (i < m->cells.n && m->cells.v[i].address == address && m->cells.v[i].access < access)
        i++;
    while (i-- > first) {
        const struct access *before = &m->accesses.v[m->cells.v[i].access];

        breaker = etch_backward_breaker(m, address, m->cells.v[i].access, after);
        if (breaker != NO_VAR || before->kind != ACCESS_READ) {
            w->instruction = breaker == NO_VAR ? before->instruction : m->accesses.v[breaker].instruction;
            if (breaker != NO_VAR && m->accesses.v[breaker].kind == ACCESS_WRITE && breaker < w->store) {
                w->store = breaker; /* why its place is unknown says more */
                w->var = m->accesses.v[breaker].address;
                return ETCH_WHY_COUNT;
            }
            if (breaker != NO_VAR)
                return why_broken(m, breaker);
            w->var = before->value;
            return before->kind == ACCESS_WRITE && before->memory != ETCH_MEMORY_SHARED ? ETCH_WHY_COUNT
                                                                                        : ETCH_WHY_COPIED;
        }
        after = m->cells.v[i].access;
    }
    breaker = etch_backward_breaker(m, address, (size_t)-1, after);
    w->instruction = breaker == NO_VAR ? 0 : m->accesses.v[breaker].instruction;
    return breaker == NO_VAR ? ETCH_WHY_START_MEMORY : why_broken(m, breaker);
}

enum etch_why_unknown etch_backward_find_why(const struct model *m, uint32_t access, uint32_t *instruction)
{
    struct walk w = {
        .m = m, .var = m->accesses.v[access].value, .instruction = m->accesses.v[access].instruction, .store = NO_VAR};
    enum etch_why_unknown why = ETCH_WHY_COUNT;

    for (uint32_t step = 0; step < LONGEST && why == ETCH_WHY_COUNT; step++) {
        uint32_t op = m->maker[w.var], reading = op == NO_VAR ? m->holder[w.var] : NO_VAR;

        if (op != NO_VAR) {
            if (through_operation(&w, op))
                continue;
            why = ETCH_WHY_INSTRUCTION;
        } else if (reading == NO_VAR)
            why = (enum etch_why_unknown)m->origins.v[w.var].why;
        else if (!m->accesses.v[reading].located) {
            w.var = m->accesses.v[reading].address;
            continue;
        } else if ((why = through_memory(&w, reading)) == ETCH_WHY_COUNT)
            continue;
        if (reading == NO_VAR)
            w.instruction = m->origins.v[w.var].instruction;
    }
    *instruction = w.instruction;
    return why == ETCH_WHY_COUNT ? ETCH_WHY_INSTRUCTION : why;
}
