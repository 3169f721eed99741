/* SPDX-License-Identifier: MIT */
/* The record SYNC of a software recorder's ring, which says where the thread is. */
#include "decoder/flow/soft_replay.h"

#define AFTER_TELLING 0xffu /* in place of an edge: at the node, whose number was told */

/* Goes up to where a segment was left: by a call, or by a handler that did not return. */
static void leave_segment(struct etch_replay *r)
{
    if (!etch_replay_in_segment(r->c))
        return;
    etch_replay_go_silently(r);
    if (!etch_replay_in_segment(r->c))
        return;
    if (r->c->signal_ip && etch_replay_go_to_ip(r, r->c->signal_ip, false))
        return;
    etch_replay_report_rest(r);
    etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_UNSPECIFIED, "the end of a segment that control left is not known");
}

/* Leaves the frames above the one that control came back to. Perhaps control left several activations. */
static bool unwind_frames(struct etch_replay *r, uint32_t function, const struct etch_soft_sync *sync,
                          const uint8_t *addresses)
{
    struct etch_replay_context *c = r->c;
    size_t top = c->frames.n, bottom, kept;

    for (;;) {
        bottom = etch_replay_activation(r, top);
        kept = etch_replay_fits(r, bottom, top, sync, addresses);
        if (kept != SIZE_MAX && (kept < c->frames.n ? c->frames.v[kept].function : c->function) == function) {
            c->frames.n = kept;
            return true;
        }
        if (bottom == 0)
            return etch_replay_build_frames(r, addresses, sync->frames);
        top = bottom - 1;
    }
}

/* Control came back to a node by longjmp or an exception. */
static void take_landed(struct etch_replay *r, const struct etch_soft_sync *sync, const uint8_t *addresses)
{
    struct etch_replay_context *c = r->c;
    uint32_t function = etch_soft_map_function(r->map, sync->where);
    const struct etch_soft_place *place;
    size_t n;

    if (function == UINT32_MAX || sync->node >= r->map->functions.v[function].nodes) {
        etch_replay_lose(r, "control came back to where the binaries have nothing");
        return;
    }
    leave_segment(r);
    if (!etch_replay_is_unplaced(c))
        etch_replay_event(r, ETCH_STEP_END, 0, 0);
    if (!unwind_frames(r, function, sync, addresses))
        return;
    place = etch_soft_map_places(r->map, function, sync->node, &n);
    if (!n) {
        etch_replay_lose(r, etch_replay_no_way);
        return;
    }
    c->function = function;
    c->state = ETCH_REPLAY_AT_NODE;
    c->node = sync->node;
    c->position = etch_soft_position_at(r->walks, place->address);
    etch_replay_event(r, ETCH_STEP_BEGIN, place->address, 0);
    etch_replay_walk(r, ETCH_SOFT_TO_NODE, sync->node);
}

/* Is the thread in a loop-free way where the recorder says? Then both agree. */
static bool agrees(const struct etch_replay *r, const struct etch_soft_place *flush, const struct etch_soft_sync *sync,
                   const uint8_t *addresses)
{
    const struct etch_replay_context *c = r->c;
    const struct etch_soft_function *f = &r->map->functions.v[flush->function];
    const struct etch_soft_map_node *n = &f->node[flush->node];

    if (etch_replay_is_unplaced(c))
        return false;
    if (n->kind != ETCH_SOFT_FLOW || sync->edge == AFTER_TELLING || sync->flags & ETCH_SOFT_TRUNCATED)
        return true; /* the replay is a call or return further */
    return etch_replay_in_segment(c) && c->function == flush->function &&
           sync->edge < etch_soft_map_edges(f, flush->node) && f->edge[n->first_edge + sync->edge].target == c->node &&
           etch_replay_fits(r, etch_replay_activation(r, c->frames.n), c->frames.n, sync, addresses) == c->frames.n;
}

/* Goes on where the recorder says. */
static void resume(struct etch_replay *r, const struct etch_soft_place *flush, const struct etch_soft_sync *sync,
                   const uint8_t *addresses)
{
    const struct etch_soft_function *f = &r->map->functions.v[flush->function];
    struct etch_replay_context *c = r->c;

    if (!etch_replay_is_unplaced(c))
        etch_replay_lose(r, etch_replay_disagrees);
    if (!etch_replay_build_frames(r, addresses, sync->frames))
        return;
    c->function = flush->function;
    c->position = etch_soft_position_at(r->walks, sync->where);
    etch_replay_event(r, ETCH_STEP_BEGIN, sync->where, 0);
    if (sync->edge == AFTER_TELLING) {
        if (etch_replay_reach(r, flush->node))
            c->state = ETCH_REPLAY_AT_NODE;
    } else if (sync->edge < etch_soft_map_edges(f, flush->node)) {
        etch_replay_follow(r, flush->node, &f->edge[f->node[flush->node].first_edge + sync->edge]);
    } else {
        etch_replay_lose(r, "an edge that the function does not have");
    }
}

/* The SYNC names the caller of the function whose ENTRY follows. If code without a recorder is between, the SYNC names
 * the innermost known caller. */
static void take_caller(struct etch_replay *r, const struct etch_soft_sync *sync, const uint8_t *addresses)
{
    struct etch_replay_context *c = r->c;
    uint64_t where = sync->where, before = 0;
    uint32_t function, node;
    size_t i = 0;

    if (!etch_replay_is_unplaced(c))
        return;
    while (where == 0 || (!etch_soft_next_node(r->walks, where, &function, &node) &&
                          !etch_replay_is_dark_call(r, where, &function, &node))) {
        if (i == sync->frames)
            return;
        before = where;
        where = etch_replay_word(addresses + 8 * i++);
    }
    if (before && !etch_replay_called_out(r, before, where))
        return;
    if (!etch_replay_build_frames(r, addresses + 8 * i, sync->frames - i))
        return;
    c->state = ETCH_REPLAY_CALLED_OUT;
    c->function = function;
    c->node = node;
    c->position = etch_soft_position_at(r->walks, where);
    etch_replay_event(r, ETCH_STEP_BEGIN, where, 0);
}

/* The chunk changed on a back edge without a byte: the head that it leads to is where the next byte belongs. */
static void follow_silently(struct etch_replay *r, const struct etch_soft_place *flush,
                            const struct etch_soft_sync *sync)
{
    const struct etch_soft_function *f = &r->map->functions.v[flush->function];
    const struct etch_soft_map_node *n = &f->node[flush->node];

    if (!etch_replay_is_unplaced(r->c) && n->kind == ETCH_SOFT_FLOW &&
        sync->edge < etch_soft_map_edges(f, flush->node) &&
        f->edge[n->first_edge + sync->edge].flags & ETCH_SOFT_SILENT)
        etch_replay_go_to_byte(r);
}

void etch_replay_take_sync(struct etch_replay *r, const struct etch_soft_sync *sync, const uint8_t *addresses)
{
    const struct etch_soft_place *flush;

    if (sync->flags & ETCH_SOFT_OUTSIDE) {
        take_caller(r, sync, addresses);
        return;
    }
    if (sync->flags & ETCH_SOFT_LANDED) {
        take_landed(r, sync, addresses);
        return;
    }
    flush = etch_soft_map_flush(r->map, sync->where);
    if (flush)
        follow_silently(r, flush, sync);
    if (!flush)
        etch_replay_lose(r, "the recorder was where the binaries have none");
    else if (!agrees(r, flush, sync, addresses))
        resume(r, flush, sync, addresses);
}
