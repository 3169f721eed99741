/* SPDX-License-Identifier: MIT */
/* Stores to unknown places. At first each is taken not to hit any byte whose value is carried across it. That shows
 * more values, and they mostly show where the stores went. Then every store must account for itself: one whose place is
 * still unknown, or that did hit such a byte, is not taken so again, and all is done once more. What is known in the
 * end depends on no store whose place is unknown, other than that pointers do not lead into private frames. */
#include "decoder/values/backward_model.h"

#define WALK 64u /* variables that are looked at for one store */

static bool is_judged(const struct model *m, size_t i)
{
    const struct access *a = &m->accesses.v[i];

    return (a->kind == ACCESS_WRITE || a->kind == ACCESS_RANGE) && !a->ring && m->bold[i] != BOLD_NEVER;
}

/* The earliest access whose bytes are carried. */
static uint32_t first_carried(const struct model *m)
{
    for (uint32_t i = 0; i < m->accesses.n; i++) {
        const struct access *a = &m->accesses.v[i];

        if (a->located && a->memory != ETCH_MEMORY_CONSTANT && a->memory != ETCH_MEMORY_SHARED &&
            (a->kind == ACCESS_READ || a->kind == ACCESS_WRITE))
            return i;
    }
    return NO_VAR;
}

/* Whether an earlier access had a byte of the place: its value may have been carried across the store. */
static bool has_earlier(const struct model *m, const struct access *a, uint32_t access)
{
    for (uint32_t i = 0; i < a->length; i++) {
        size_t c = etch_backward_first_cell(m, a->at + i);

        if (c < m->cells.n && m->cells.v[c].address == a->at + i && m->cells.v[c].access < access)
            return true;
    }
    return false;
}

/* ---- Stores that may have made the pointer that they went through ---- */

struct walk {
    const struct model *m;
    uint32_t store;
    uint32_t v[WALK];
    size_t n;
};

static void visit(struct walk *w, uint32_t var)
{
    if (var == NO_VAR || w->n == WALK)
        return;
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i] == var)
            return;
    w->v[w->n++] = var;
}

/* The value was read before the store, and is known from after it: the store itself may have written it. Its value
 * decides, if the size is the same. */
static bool may_be_its_own(struct walk *w, uint32_t reading)
{
    const struct model *m = w->m;
    const struct access *r = &m->accesses.v[reading], *s = &m->accesses.v[w->store];
    const struct var *read = &m->vars.v[r->value], *stored = &m->vars.v[s->value];
    uint64_t mask = etch_backward_mask(s->size * 8u);
    size_t c = etch_backward_first_cell(m, r->at);

    while (c < m->cells.n && m->cells.v[c].address == r->at && m->cells.v[c].access <= reading)
        c++;
    if (c < m->cells.n && m->cells.v[c].address == r->at) {
        visit(w, m->accesses.v[m->cells.v[c].access].value);
        if (m->cells.v[c].access <= w->store)
            return false;
    }
    if (s->kind == ACCESS_RANGE) /* its bytes are not known */
        return reading < w->store && r->at - s->at < s->length;
    return reading < w->store && r->size == s->size &&
           !(stored->known & read->known & mask & (stored->value ^ read->value));
}

static bool is_own_pointer(const struct model *m, uint32_t store)
{
    struct walk w = {.m = m, .store = store};

    visit(&w, m->accesses.v[store].address);
    for (size_t i = 0; i < w.n; i++) {
        uint32_t reading = m->holder[w.v[i]];

        if (reading != NO_VAR && m->accesses.v[reading].located && m->accesses.v[reading].memory < ETCH_MEMORY_SHARED &&
            may_be_its_own(&w, reading))
            return true;
        for (uint32_t r = m->vars.v[w.v[i]].reason; r != NO_VAR; r = m->reasons.v[r].before)
            if (m->reasons.v[r].op != NO_VAR) {
                visit(&w, m->ops.v[m->reasons.v[r].op].out);
                for (int k = 0; k < 3; k++)
                    visit(&w, m->ops.v[m->reasons.v[r].op].in[k]);
            }
    }
    return false;
}

/* ---- The door ---- */

static void judge(struct model *m, uint32_t i, uint32_t first, bool *again)
{
    const struct access *a = &m->accesses.v[i];

    if (!a->located) {
        if (first >= i)
            return;
        m->bold[i] = BOLD_NEVER;
    } else if (m->bold[i] == BOLD_ELSEWHERE && m->hint[i] == a->at && !is_own_pointer(m, i))
        return;
    else if (m->bold[i] == BOLD_ELSEWHERE || (a->late && is_own_pointer(m, i)))
        m->bold[i] = BOLD_NEVER;
    else if (a->late && has_earlier(m, a, i)) {
        m->bold[i] = BOLD_ELSEWHERE;
        m->hint[i] = a->at;
    } else
        return;
    *again = true;
}

bool etch_backward_judge_stores(struct model *m)
{
    uint32_t first = first_carried(m);
    bool again = false;

    for (uint32_t i = 0; i < m->accesses.n; i++)
        if (is_judged(m, i))
            judge(m, i, first, &again);
    return again;
}

bool etch_backward_doubt_stores(struct model *m, bool all)
{
    bool any = false;

    for (size_t i = 0; i < m->accesses.n; i++)
        if (is_judged(m, i) && (all || !m->accesses.v[i].located)) {
            m->bold[i] = BOLD_NEVER;
            any = true;
        }
    return any;
}
