/* SPDX-License-Identifier: MIT */
/* Pointers into the heap, whose value is not known: they were computed from what malloc and its like returned. */
#include "decoder/values/backward_model.h"

#define CHAIN 256u

/* The operand through which a pointer goes on; NO_VAR: none. */
static uint32_t pointer_operand(struct model *m, const struct op *o, unsigned depth)
{
    if (o->width != 64 || o->shift)
        return NO_VAR;
    switch (o->kind) {
    case OP_EXTRACT:
    case OP_SUB:
        return o->in[0];
    case OP_ADD:
        return depth && m->vars.v[o->in[1]].known != ~(uint64_t)0 && etch_backward_is_heap(m, o->in[1]) ? o->in[1]
                                                                                                        : o->in[0];
    default:
        return NO_VAR;
    }
}

static bool find_heap(struct model *m, uint32_t var)
{
    for (unsigned i = 0; i < CHAIN && var != NO_VAR; i++) {
        if (m->heap[var])
            return true;
        if (m->same[var] != NO_VAR)
            var = m->same[var];
        else if (m->maker[var] != NO_VAR)
            var = pointer_operand(m, &m->ops.v[m->maker[var]], CHAIN - i);
        else
            return m->holder[var] == NO_VAR && m->origins.v[var].why == ETCH_WHY_ALLOCATED;
    }
    return false;
}

bool etch_backward_is_heap(struct model *m, uint32_t var)
{
    return m->heap[var] = m->heap[var] || find_heap(m, var);
}
