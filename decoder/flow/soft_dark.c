/* SPDX-License-Identifier: MIT */
/* The records DARK and GONE_DARK of a software recorder's ring: a function was called whose plain copy runs, since
 * recording it cost more than the budget. */
#include "decoder/flow/soft_replay.h"

/* The code that the function at hand returns to; 0: not known. */
static uint64_t return_address(const struct etch_replay_context *c)
{
    size_t n = c->frames.n;

    while (n > 0 && c->frames.v[n - 1].kind == ETCH_FRAME_JUMPED)
        n--;
    return n > 0 && c->frames.v[n - 1].kind != ETCH_FRAME_OUTSIDE ? c->frames.v[n - 1].position.from : 0;
}

/* Calls of functions without a byte of their own are replayed silently. So the same function may begin several times
 * before the record. The return address says which of them it is. */
bool etch_replay_is_dark(const struct etch_replay *r)
{
    const struct etch_replay_context *c = r->c;
    uint64_t from;

    if (!r->dark.function || c->state != ETCH_REPLAY_AT_NODE || c->node != 0 ||
        etch_replay_function(r)->address != r->dark.function)
        return false;
    from = return_address(c);
    return !from || (uint32_t)from == r->dark.from;
}

bool etch_replay_is_dark_call(const struct etch_replay *r, uint64_t address, uint32_t *function, uint32_t *node)
{
    size_t at = etch_soft_map_mark_at(r->map, address);
    const struct etch_soft_function *f;

    if (!at || !etch_soft_map_is_plain(r->map, etch_replay_called_before(r, address)))
        return false;
    f = &r->map->functions.v[r->map->marks.v[at - 1].function];
    *function = r->map->marks.v[at - 1].function;
    *node = r->map->marks.v[at - 1].node + 1;
    return (f->dims && *node == f->nodes - 1) || (f->rests && *node == f->nodes - 3);
}

static bool call_plain(struct etch_replay *r, uint32_t node)
{
    const struct etch_soft_function *f = etch_replay_function(r);

    return etch_replay_walk(r, ETCH_SOFT_TO_NODE, node) &&
           etch_replay_follow(r, node, &f->edge[f->node[node].first_edge]);
}

void etch_replay_take_dark(struct etch_replay *r, uint64_t function, uint32_t from)
{
    bool there;

    if (etch_replay_place(r->c) == ETCH_REPLAY_OUTSIDE)
        etch_replay_lose(r, etch_replay_went_on);
    if (r->c->state == ETCH_REPLAY_LOST)
        return;
    r->dark.function = function;
    r->dark.from = from;
    there = etch_replay_go_to_byte(r) && etch_replay_is_dark(r) && etch_replay_function(r)->dims;
    r->dark.function = 0;
    if (!there) {
        etch_replay_lose(r, etch_replay_disagrees);
        return;
    }
    etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_BUDGET, "a function was not recorded: over the budget");
    call_plain(r, etch_replay_function(r)->nodes - 2);
}

/* The code went from the turn to the next chunk to the call of the rest, and not by the head of the loop. */
void etch_replay_take_gone(struct etch_replay *r, uint64_t function)
{
    const struct etch_soft_function *f;
    const struct etch_soft_place *place;
    uint32_t node;
    size_t n = 0;

    if (etch_replay_is_unplaced(r->c) || !etch_replay_go_to_byte(r) || r->c->state != ETCH_REPLAY_AT_NODE ||
        (f = etch_replay_function(r))->address != function || !f->rests || f->nodes < 4) {
        etch_replay_lose(r, etch_replay_disagrees);
        return;
    }
    node = f->nodes - 4;
    place = etch_soft_map_places(r->map, r->c->function, node, &n);
    if (!n) {
        etch_replay_lose(r, etch_replay_no_way);
        return;
    }
    etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_BUDGET, "a function was not recorded: over the budget");
    etch_replay_event(r, ETCH_STEP_END, 0, 0);
    etch_replay_event(r, ETCH_STEP_BEGIN, place->address, 0);
    r->c->position = etch_soft_position_at(r->walks, place->address);
    call_plain(r, node);
}
