/* SPDX-License-Identifier: MIT */
/* The call at the end of a segment: into a function with a recorder, or into a stub, a guard or other code. */
#include "decoder/flow/soft_replay.h"

#define GUARD_BLOCKS 8u /* more than any has */

/* The called function, if it has a recorder and does not report by itself that it was entered; else UINT32_MAX. */
static uint32_t callee_at(const struct etch_replay *r, uint64_t target)
{
    uint32_t callee = target ? etch_soft_map_function(r->map, target) : UINT32_MAX;

    return callee != UINT32_MAX && !r->map->functions.v[callee].enters ? callee : UINT32_MAX;
}

/* Calls code without a recorder; the call's own block is reported. `target` is 0 where it is not known. */
static bool call_out(struct etch_replay *r, uint64_t target, uint32_t after)
{
    struct etch_replay_context *c = r->c;

    c->node = after;
    if (target && etch_soft_map_guarded(r->map, target) != UINT32_MAX) {
        c->state = ETCH_REPLAY_AT_GUARD;
        c->guard = target;
        return true;
    }
    etch_replay_event(r, ETCH_STEP_END, target, 0);
    if (c->position.now)
        etch_replay_event(r, ETCH_STEP_BEGIN, c->position.now, 0);
    c->state = target && etch_soft_map_is_stub(r->map, target) ? ETCH_REPLAY_AT_STUB : ETCH_REPLAY_CALLED_OUT;
    return true;
}

/* A guard is comparisons, and a jump. */
bool etch_replay_pass_guard(struct etch_replay *r)
{
    struct etch_replay_context *c = r->c;
    uint32_t function = etch_soft_map_guarded(r->map, c->guard);
    struct etch_block_view *view = etch_soft_walks_view(r->walks);
    const char *why;
    const struct etch_block *b = etch_block_at(view, c->guard, &why);

    for (unsigned i = 0; i < GUARD_BLOCKS && b; i++) {
        etch_step_buffer_block(r->buffer, b);
        b = b->branch == ETCH_BRANCH_CONDITIONAL ? etch_block_at(view, b->end, &why) : NULL;
    }
    c->state = ETCH_REPLAY_CALLED_OUT;
    return etch_replay_push(r, etch_replay_frame_behind(r)) && etch_replay_enter(r, function);
}

/* Reports a way up to its last call, if that call is followed by nothing but a return, or all of it, if the way ends in
 * a jump. Returns the block of the call or jump. */
static const struct etch_block *report_last_call(struct etch_replay *r, const struct etch_soft_way *way,
                                                 struct etch_replay_frame *f)
{
    const struct etch_block *last = way->blocks[way->n - 1];
    size_t calls = way->n;

    while (calls > 0 && !etch_replay_passes_call(way->blocks[calls - 1]))
        calls--;
    if (last->branch == ETCH_BRANCH_RETURN && calls) {
        last = way->blocks[calls - 1];
        etch_replay_report_way(r, way, calls - 1);
        etch_step_buffer_block(r->buffer, last);
        f->kind = ETCH_FRAME_BARE;
        f->position = etch_soft_position_at(r->walks, last->end);
    } else {
        etch_replay_report_way(r, way, way->n);
        f->kind = ETCH_FRAME_JUMPED;
    }
    return last;
}

/* A call with nothing behind it: perhaps a jump, perhaps a call and a return. */
static bool call_last(struct etch_replay *r, uint32_t after)
{
    const struct etch_soft_way *way = etch_replay_find_way(r, ETCH_SOFT_TO_RETURN, 0);
    struct etch_replay_frame f = {.function = r->c->function, .node = after};
    const struct etch_block *last;
    uint64_t target;
    uint32_t callee;

    if (!way)
        return false;
    last = report_last_call(r, way, &f);
    target = last->branch == ETCH_BRANCH_CALL || last->branch == ETCH_BRANCH_JUMP ? last->target : 0;
    callee = callee_at(r, target);
    if (callee != UINT32_MAX)
        return etch_replay_push(r, f) && etch_replay_enter(r, callee);
    r->c->position = f.position; /* of a jump it is 0: the callee is in our place, for whoever called us */
    return call_out(r, target, after);
}

bool etch_replay_call(struct etch_replay *r, uint32_t after)
{
    const struct etch_soft_way *way;
    const struct etch_block *last;
    uint64_t target;
    uint32_t callee;

    if (etch_replay_is_unmarked(r, r->c->function, after))
        return call_last(r, after);
    way = etch_replay_find_way(r, ETCH_SOFT_TO_CALL, after);
    if (!way)
        return false;
    last = way->blocks[way->n - 1];
    etch_replay_report_way(r, way, way->n - 1);
    etch_step_buffer_block(r->buffer, last);
    r->c->position = way->end;
    target = last->branch == ETCH_BRANCH_CALL ? last->target : 0;
    callee = callee_at(r, target);
    if (callee != UINT32_MAX) {
        struct etch_replay_frame f = {.function = r->c->function, .node = after, .position = way->end};

        return etch_replay_push(r, f) && etch_replay_enter(r, callee);
    }
    return call_out(r, target, after);
}
