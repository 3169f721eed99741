/* SPDX-License-Identifier: MIT */
/* Signal handlers: where one begins and ends among a thread's steps, as a trace shows it and as a recorder reports it.
 */
#include "sketch/runs/build_model.h"

#include <string.h>

#define HELD_MAX 4096u /* steps of a handler that are held back */

static void enter_handler(struct walk *w, uint64_t resume)
{
    w->unkept_handlers += resume && w->n_handlers == HANDLERS_MAX;
    if (w->n_handlers == HANDLERS_MAX || !resume)
        return;
    w->handlers[w->n_handlers++] = (struct handler){resume, w->depth};
    w->depth++;
    w->calls++;
    w->too_deep += w->depth >= DEPTH_MAX;
    if (w->depth < DEPTH_MAX)
        w->frames[w->depth] = (struct frame){0, ETCH_NOWHERE, w->calls};
}

static void leave_handler(struct walk *w)
{
    if (w->n_handlers)
        w->depth = w->handlers[--w->n_handlers].depth;
}

static bool is_function(struct build *b, uint64_t ip)
{
    struct etch_location location;
    const Etch__Image *image = etch_build_image_at(b, ip);

    if (!etch_build_is_program(b, image))
        return false;
    etch_symbols_find(b->symbols, image, ip, &location);
    return location.symbol && location.offset == 0;
}

/* ---- As a trace shows them ---- */

void etch_walk_begin_again(struct build *b, struct walk *w, uint64_t ip)
{
    uint32_t n = w->n_handlers;

    while (n > 0 && w->handlers[n - 1].resume != ip)
        n--;
    if (n > 0) {
        w->n_handlers = n - 1;
        w->depth = w->handlers[n - 1].depth;
    } else if (w->expected && ip != w->expected && is_function(b, ip)) {
        enter_handler(w, w->expected);
    } else if (!w->interrupted) {
        etch_walk_return_to(w, ip); /* what was called was not traced */
    }
    w->interrupted = false;
    w->expected = 0;
}

/* ---- As a recorder reports them ---- */

/* True if an access belongs to the held steps. */
static bool is_of_held(const struct build *b, const struct walk *w, size_t access)
{
    const Etch__Access *from = &b->recording->accesses.v[b->from.v[access]];
    uint64_t ip = from->ip - (from->ip_is_after ? 1 : 0);

    for (size_t i = 0; i < w->held.n; i++) {
        const struct etch_step *s = &w->held.v[i].step;

        if (s->kind == ETCH_STEP_BLOCK && ip >= s->first && ip < s->end && from->tsc >= s->time.lo)
            return true;
    }
    return false;
}

bool etch_walk_is_held(const struct build *b, const struct walk *w)
{
    return !w->nesting && w->next_access < etch_walk_accesses_end(b, w) && is_of_held(b, w, w->next_access);
}

bool etch_walk_is_nowhere(const struct build *b, const struct walk *w)
{
    for (size_t i = w->next_access; i < etch_walk_accesses_end(b, w); i++)
        if (is_of_held(b, w, i))
            return false;
    return true;
}

void etch_walk_run_handler(struct build *b, struct walk *w)
{
    ETCH_ARRAY(struct held) held = {.v = w->held.v, .n = w->held.n};

    memset(&w->held, 0, sizeof(w->held));
    etch_trail_doubt(b);
    enter_handler(w, UINT64_MAX);
    for (size_t i = 0; i < held.n; i++) {
        struct etch_step step = held.v[i].step;

        if (step.kind == ETCH_STEP_BLOCK)
            step.sizes = w->held_sizes.v + held.v[i].sizes;
        etch_walk_take_step(b, w, &step);
    }
    if (!w->nesting)
        leave_handler(w);
    etch_array_free(&held);
    w->held_sizes.n = 0;
}

static void hold(struct build *b, struct walk *w, const struct etch_step *step)
{
    struct held held = {*step, w->held_sizes.n};

    for (uint32_t i = 0; step->kind == ETCH_STEP_BLOCK && i < step->count; i++)
        b->failed |= !etch_array_push(&w->held_sizes, step->sizes[i]);
    b->failed |= !etch_array_push(&w->held, held);
}

bool etch_walk_take_handler(struct build *b, struct walk *w, const struct etch_step *step)
{
    bool enters = step->kind == ETCH_STEP_BEGIN && step->ip && is_function(b, step->ip);
    bool called = w->last_kind != ETCH_STEP_BLOCK && w->last_kind != ETCH_STEP_BEGIN;
    bool leaves = step->kind == ETCH_STEP_END && !called && w->last_branch == ETCH_BRANCH_RETURN;
    bool begins = !w->nesting && enters && !called && w->block;

    if (!etch_build_is_soft(b) || (!w->nesting && !begins))
        return false;
    if (begins && w->held.n)
        etch_walk_run_handler(b, w); /* the handler before had no access that would show its place */
    w->nesting += enters;
    if (begins || w->held.n)
        hold(b, w, step);
    else
        etch_walk_take_step(b, w, step);
    w->nesting -= leaves;
    w->early_handlers += w->held.n > HELD_MAX;
    if (w->held.n > HELD_MAX)
        etch_walk_run_handler(b, w);
    else if (!w->nesting && !w->held.n)
        leave_handler(w);
    return true;
}
