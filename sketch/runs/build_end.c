/* SPDX-License-Identifier: MIT */
/* The position of a thread at its end, and the statements that it executed after its last known step. */
#include "sketch/runs/build_model.h"

#include <string.h>

#define STACK_MAX 256u /* frames of a stack at the end of a thread */

const Etch__ThreadState *etch_build_state_of(const Etch__Failure *f, uint32_t tid)
{
    for (size_t i = 0; f && i < f->n_threads; i++)
        if (f->threads[i]->tid == tid)
            return f->threads[i];
    return NULL;
}

static bool is_outside(struct build *b, const struct etch_run_thread *t)
{
    for (size_t i = 0; i < t->frames.n; i++)
        if (etch_build_place_of(b, etch_build_image_at(b, t->frames.v[i]), t->frames.v[i] - (i > 0)) != ETCH_NOWHERE)
            return false;
    return true;
}

void etch_walk_stand(struct build *b, struct walk *w)
{
    struct etch_run_thread *t = &b->run->threads.v[w->thread];
    const Etch__Failure *f = b->recording->failure;
    uint64_t ip = f && f->tid == w->tid && f->ip ? f->ip : w->last_ip;
    uint32_t depth;

    if (etch_walk_stand_at_exit(b, w))
        return;
    if (!etch_array_push(&t->frames, ip) || (w->went_from && !etch_array_push(&t->frames, w->went_from + 1)))
        b->failed = true;
    depth = w->depth < DEPTH_MAX ? w->depth : DEPTH_MAX - 1;
    for (; depth > 0 && t->frames.n < STACK_MAX; depth--)
        b->failed |= !etch_array_push(&t->frames, w->frames[depth].return_address);
    w->unkept_frames += depth;
    if (is_outside(b, t)) {
        /* A heap that was damaged is often noticed only when the program's own functions have returned. */
        bool died = f && f->tid == w->tid && f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL;

        if (died && w->last_outside)
            b->failed |= !etch_array_push(&t->frames, w->last_outside);
        else if (etch_build_ended_itself(b) && w->last_program_ip)
            b->failed |= !etch_array_push(&t->frames, w->last_program_ip + 1);
        b->run->inferred |= died && w->last_outside;
    }
}

void etch_walk_visit_failure(struct build *b, struct walk *w)
{
    const Etch__Failure *f = b->recording->failure;
    struct etch_step step = {0};
    uint32_t place;

    if (b->options->slice && w->thread == 0 && etch_build_ended_itself(b))
        etch_walk_visit_exit(b, w);
    if (!f || f->tid != w->tid || !f->ip || f->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL || !b->options->slice ||
        !etch_build_use_image(b, etch_build_image_at(b, f->ip)))
        return;
    place = etch_build_table_place(b, f->ip - b->bias);
    step.time.lo = step.time.hi = f->tsc;
    w->block++;
    if (place != ETCH_NOWHERE)
        etch_walk_visit(b, w, &step, place, false, 0);
}

/* The calls that the stack at the end has no more have returned, seen or not. */
static void leave_calls(struct walk *w, const Etch__ThreadState *state)
{
    for (; w->depth > 0; w->depth--)
        for (size_t i = 0; i < state->n_frames; i++)
            if (w->depth < DEPTH_MAX && state->frames[i] == w->frames[w->depth].return_address)
                return;
}

/* The statements that a thread executed after its last known step: a recorder reports a path only at the end of the
 * path. An access that was seen proves that its statement ran. */
static void visit_rest(struct build *b, struct walk *w)
{
    size_t end = etch_walk_accesses_end(b, w);

    for (; w->next_access < end; w->next_access++) {
        struct etch_run_access *a = &b->accesses.v[w->next_access];
        const struct etch_step step = {.time = {w->last_lo, a->hi}, .cpu = UINT32_MAX};

        if (a->hi < w->last_lo || a->outside || a->seq != UINT64_MAX || a->place == ETCH_NOWHERE ||
            !b->names->places.v[a->place].statement)
            continue;
        w->block++;
        etch_walk_visit(b, w, &step, a->place, false, 0);
        etch_walk_place_access(b, w, w->next_access, &step, 0);
    }
}

/* Checks that the steps lead to the position of the thread at its end. If not, notes the functions in which the thread
 * may have done more. */
static void check_end(struct build *b, struct walk *w, const Etch__ThreadState *state)
{
    struct etch_run_thread *t = &b->run->threads.v[w->thread];
    size_t i = 0;

    while (i < state->n_frames && !etch_build_is_program(b, etch_build_image_at(b, state->frames[i] - (i > 0))))
        i++;
    if (i == state->n_frames || w->over || w->last_ip == state->frames[i])
        return;
    t->unseen = etch_build_function_at(b, w->last_ip);
    b->failed |= !t->unseen && !(t->unseen = strdup(""));
}

void etch_walk_go_to_end(struct build *b, struct walk *w)
{
    const Etch__ThreadState *state = etch_build_state_of(b->recording->failure, w->tid);

    if (!etch_build_is_soft(b) || !state || !state->n_frames || !b->options->slice)
        return;
    check_end(b, w, state);
    leave_calls(w, state);
    visit_rest(b, w);
}
