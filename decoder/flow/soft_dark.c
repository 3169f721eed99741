/* SPDX-License-Identifier: MIT */
/* The record DARK of a software recorder's ring: a function was called whose plain copy runs, since recording it cost
 * more than the budget. */
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
    if (!f->dims || r->map->marks.v[at - 1].node != f->nodes - 2)
        return false;
    *function = r->map->marks.v[at - 1].function;
    *node = f->nodes - 1;
    return true;
}

static bool call_plain(struct etch_replay *r)
{
    const struct etch_soft_function *f = etch_replay_function(r);
    uint32_t node = f->nodes - 2;

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
    call_plain(r);
}
