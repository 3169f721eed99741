/* SPDX-License-Identifier: MIT */
/* Which step an access is of: a thread's hits and its steps are in the same order, and are gone through together. */
#include "sketch/runs/build_model.h"

#define ONE_TRAP 10000u /* cycles within which several debug registers report the same instruction */

size_t etch_walk_accesses_end(const struct build *b, const struct walk *w)
{
    return w->thread < b->n_of_thread ? b->of_thread[w->thread].first + b->of_thread[w->thread].n : 0;
}

bool etch_walk_has_access(const struct build *b, const struct walk *w, const struct etch_step *step)
{
    uint64_t ip =
        w->next_access < b->accesses.n ? b->recording->accesses.v[b->from.v[w->next_access]].ip : step->last + 1;

    return ip >= step->first && ip <= step->last;
}

/* Accesses without a step: by code without a recorder, or before the oldest data in the ring. */
static bool is_beyond_steps(struct build *b, const struct etch_run_access *a, const Etch__Access *from,
                            const struct etch_step *step)
{
    return etch_build_is_soft(b) &&
           (!etch_build_is_program(b, etch_build_image_at(b, from->ip - (from->ip_is_after ? 1 : 0))) ||
            a->hi < step->time.lo);
}

/* A hit of a debug register is stamped at its end. It may have begun at any time since the hit before. The recorder's
 * own stamps in between narrow the time. */
static void tie_access(struct build *b, const struct walk *w, size_t access, const struct etch_step *step)
{
    struct etch_mark mark = etch_mark_of_step(step);
    struct etch_mark_tie tie = {.record = b->from.v[access], .mark_first = true};
    const struct etch_mark *last = b->marks.n ? &b->marks.v[b->marks.n - 1] : NULL;

    if (b->recording->source != ETCH__SOURCE__SOURCE_SOFT || !step->time.lo || b->accesses.v[access].hi < step->time.lo)
        return;
    mark.tid = w->tid;
    mark.hi = mark.lo;
    if (!b->marks.n || last->tid != mark.tid || last->lo.tsc != mark.lo.tsc)
        b->failed |= !etch_array_push(&b->marks, mark);
    tie.mark = b->marks.n - 1;
    b->failed |= !b->failed && !etch_array_push(&b->ties, tie);
}

void etch_walk_place_access(struct build *b, struct walk *w, size_t access, const struct etch_step *step,
                            uint32_t index)
{
    struct etch_run_access *a = &b->accesses.v[access];

    tie_access(b, w, access, step);
    a->seq = w->block << IN_BLOCK_BITS | (index & ((1u << IN_BLOCK_BITS) - 1));
    a->depth = w->depth;
    a->handler = w->n_handlers > 0;
    a->call = w->depth < DEPTH_MAX ? w->frames[w->depth].call : 0;
    if (a->place == ETCH_NOWHERE && (a->header || a->outside))
        a->place = etch_walk_own_place(b, w, step->last ? step->last : w->last_ip);
    if (a->header)
        etch_build_name_library(b, access);
    if (a->place != ETCH_NOWHERE && a->place < w->n_visit && w->visit[a->place])
        a->nth = b->run->visits.v[w->visit[a->place] - 1].count;
}

void etch_walk_take_outside(struct build *b, struct walk *w, const struct etch_step *step, uint32_t index)
{
    size_t end = etch_walk_accesses_end(b, w);

    for (; w->next_outside < end; w->next_outside++) {
        struct etch_run_access *a = &b->accesses.v[w->next_outside];

        if (!a->outside || a->hi < step->time.lo)
            continue;
        if (b->recording->accesses.v[b->from.v[w->next_outside]].caller != step->end)
            return;
        etch_walk_place_access(b, w, w->next_outside, step, index);
    }
}

/* True if an access belongs to the next execution of an instruction. The instruction had already made an access of this
 * kind: to the same memory, or in another trap if a trap reports all accesses of an instruction. */
static bool is_again(const struct build *b, const struct etch_run_access *a, const struct etch_run_access *next)
{
    bool apart = b->recording->source == ETCH__SOURCE__SOURCE_SOFT && next->hi > a->hi + ONE_TRAP;

    return (a->address == next->address || apart) && ((a->read && next->read) || (a->write && next->write));
}

/* True if the walk is in the call for which a header's code made an access, according to the stack of the access. The
 * same code runs for many callers, and not each time on watched memory. */
static bool is_called_for(const struct walk *w, const struct etch_run_access *a, const Etch__Access *from)
{
    if (!a->header || !from->caller)
        return true;
    for (uint32_t d = w->depth < DEPTH_MAX ? w->depth : DEPTH_MAX - 1; d > 0; d--)
        if (w->frames[d].return_address == from->caller)
            return true;
    return false;
}

void etch_walk_take_accesses(struct build *b, struct walk *w, const struct etch_step *step, uint64_t ip, uint32_t index)
{
    size_t end = etch_walk_accesses_end(b, w), first = w->next_access;
    bool wrote = false;

    while (w->next_access < end) {
        struct etch_run_access *a = &b->accesses.v[w->next_access];
        const Etch__Access *from = &b->recording->accesses.v[b->from.v[w->next_access]];
        bool again = false;

        if (is_beyond_steps(b, a, from, step)) {
            w->next_access++;
            first = w->next_access;
            continue;
        }
        for (size_t i = first; i < w->next_access; i++)
            again |= is_again(b, &b->accesses.v[i], a);
        if (from->ip != (from->ip_is_after ? ip + step->sizes[index] : ip) || (wrote && a->read && !a->write) ||
            again || !is_called_for(w, a, from))
            return;
        wrote |= a->write;
        etch_walk_place_access(b, w, w->next_access, step, index);
        w->next_access++;
    }
}
