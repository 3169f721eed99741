/* SPDX-License-Identifier: MIT */
/* Knowledge about variables, spread over operations until nothing new follows. Knowledge only grows. */
#include "decoder/values/backward_model.h"

uint64_t etch_backward_mask(unsigned bits)
{
    return bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
}

void etch_backward_wake(struct model *m, uint32_t var)
{
    for (uint32_t i = m->use_start[var]; i < m->use_start[var + 1]; i++) {
        uint32_t op = m->uses[i];

        if (m->queued[op])
            continue;
        m->queued[op] = true;
        m->queue[(m->queue_head + m->queue_n++) % m->ops.n] = op;
    }
}

void etch_backward_learn(struct model *m, uint32_t var, uint64_t value, uint64_t known, enum etch_how_known how,
                         uint32_t op, uint64_t address)
{
    struct var *v;
    uint64_t fresh;

    if (var == NO_VAR || m->conflict != NO_VAR)
        return;
    v = &m->vars.v[var];
    fresh = known & ~v->known;
    if (!fresh && !(known & v->known & (value ^ v->value)))
        return;
    if (!etch_array_push(&m->reasons, ((struct reason){.before = v->reason, .op = op, .address = address}))) {
        m->failed = true;
        return;
    }
    v->reason = (uint32_t)(m->reasons.n - 1);
    if (known & v->known & (value ^ v->value)) {
        m->conflict = var;
        return;
    }
    v->known |= fresh;
    v->value |= value & fresh;
    v->how = (uint8_t)how;
    etch_backward_wake(m, var);
}

void etch_backward_propagate(struct model *m)
{
    while (m->queue_n && m->conflict == NO_VAR && !m->failed) {
        uint32_t op = m->queue[m->queue_head];

        m->queue_head = (m->queue_head + 1) % m->ops.n;
        m->queue_n--;
        m->queued[op] = false;
        etch_backward_evaluate(m, op);
    }
}
