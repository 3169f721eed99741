/* SPDX-License-Identifier: MIT */
/* Segments: from one node of a function to the next, along the way that a byte of the ring says. */
#include "decoder/flow/soft_replay.h"

static const char no_path[] = "a path number that the function does not have";
static const char endless[] = "a loop without end that leaves no byte";

bool etch_replay_is_unmarked(const struct etch_replay *r, uint32_t function, uint32_t node)
{
    size_t n;

    etch_soft_map_places(r->map, function, node, &n);
    return n == 0;
}

bool etch_replay_reach(struct etch_replay *r, uint32_t node)
{
    struct etch_replay_context *c = r->c;

    c->node = node;
    c->state = ETCH_REPLAY_AT_NODE;
    c->high = -1;
    if (!etch_replay_walk(r, ETCH_SOFT_TO_NODE, node))
        return false;
    if (etch_replay_function(r)->node[node].flags & ETCH_SOFT_TELLS)
        c->state = ETCH_REPLAY_AT_TARGET;
    return true;
}

bool etch_replay_enter(struct etch_replay *r, uint32_t function)
{
    r->c->function = function;
    r->c->position = etch_soft_position_at(r->walks, r->map->functions.v[function].address);
    return etch_replay_reach(r, 0);
}

static bool leave(struct etch_replay *r)
{
    return etch_replay_walk(r, ETCH_SOFT_TO_RETURN, 0) && etch_replay_go_back(r);
}

bool etch_replay_follow(struct etch_replay *r, uint32_t node, const struct etch_soft_map_edge *edge)
{
    switch (etch_replay_function(r)->node[node].kind) {
    case ETCH_SOFT_CALL:
        return etch_replay_call(r, edge->target);
    case ETCH_SOFT_RETURN:
        return leave(r);
    case ETCH_SOFT_RESUME:
        if (!etch_replay_walk(r, ETCH_SOFT_TO_OUTSIDE, 0))
            return false;
        r->c->state = ETCH_REPLAY_CALLED_OUT;
        r->c->node = ETCH_REPLAY_NO_NODE;
        return true;
    case ETCH_SOFT_COMPUTED:
        r->c->state = ETCH_REPLAY_AT_GOTO;
        r->c->node = node;
        r->c->high = -1;
        return true;
    default:
        return etch_replay_reach(r, edge->target);
    }
}

/* The edge of `node` on the path with number `*path`. The edge's value is subtracted from `*path`. */
static const struct etch_soft_map_edge *choose(const struct etch_soft_function *f, uint32_t node, uint32_t *path)
{
    const struct etch_soft_map_edge *edges = f->edge + f->node[node].first_edge, *best = edges;
    uint32_t n = etch_soft_map_edges(f, node);

    for (uint32_t i = 0; i < n; i++)
        if (edges[i].value <= *path && edges[i].value >= best->value)
            best = &edges[i];
    *path -= best->value;
    return best;
}

const struct etch_soft_map_edge *etch_replay_only_end(const struct etch_replay *r, uint32_t *node)
{
    const struct etch_soft_function *f = etch_replay_function(r);
    uint32_t at = r->c->node;

    if (f->node[at].paths != 1)
        return NULL;
    for (uint32_t i = 0; i < f->nodes; i++) {
        const struct etch_soft_map_edge *e = f->edge + f->node[at].first_edge;

        *node = at;
        if (e->flags & ETCH_SOFT_CUT)
            return e;
        at = e->target;
    }
    return NULL;
}

bool etch_replay_go(struct etch_replay *r, uint32_t path)
{
    const struct etch_soft_function *f = etch_replay_function(r);
    uint32_t at = r->c->node;

    for (uint32_t i = 0; i < f->nodes; i++) {
        const struct etch_soft_map_edge *e = choose(f, at, &path);

        if (e->flags & ETCH_SOFT_CUT) {
            if (path != 0)
                break;
            return etch_replay_follow(r, at, e);
        }
        if (!etch_replay_walk(r, ETCH_SOFT_TO_NODE, e->target))
            return false;
        at = e->target;
    }
    return etch_replay_lose(r, no_path);
}

bool etch_replay_go_silently(struct etch_replay *r)
{
    for (unsigned i = 0; i < ETCH_REPLAY_SILENT_MAX; i++) {
        const struct etch_soft_map_edge *end;
        uint32_t node;

        if (r->c->state == ETCH_REPLAY_AT_GUARD && r->c->guard != r->replaced) {
            if (!etch_replay_pass_guard(r))
                return false;
            continue;
        }
        if (r->c->state != ETCH_REPLAY_AT_NODE || etch_replay_is_dark(r))
            return true;
        end = etch_replay_only_end(r, &node);
        if (!end || !(end->flags & ETCH_SOFT_SILENT) || etch_replay_returns_outside(r, node))
            return true;
        if (!etch_replay_go(r, 0))
            return false;
    }
    return etch_replay_lose(r, endless);
}

bool etch_replay_come_back(struct etch_replay *r)
{
    struct etch_replay_context *c = r->c;

    if (c->state != ETCH_REPLAY_CALLED_OUT)
        return true;
    if (c->node == ETCH_REPLAY_NO_NODE)
        return etch_replay_lose(r, "an exception went where the recorder did not see it");
    if (etch_replay_is_unmarked(r, c->function, c->node))
        return c->position.now ? leave(r) : etch_replay_go_back(r);
    return etch_replay_reach(r, c->node);
}

bool etch_replay_go_to_byte(struct etch_replay *r)
{
    for (unsigned i = 0; i < ETCH_REPLAY_SILENT_MAX; i++) {
        if (!etch_replay_come_back(r) || !etch_replay_go_silently(r))
            return false;
        if (r->c->state != ETCH_REPLAY_CALLED_OUT)
            return true;
    }
    return etch_replay_lose(r, endless);
}

/* ---- Bytes ---- */

static uint32_t told_node(const struct etch_soft_function *f, uint32_t number)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        if (f->node[i].flags & ETCH_SOFT_TELLS && f->node[i].tells == number)
            return i;
    return UINT32_MAX;
}

/* A byte of the number of a computed goto's target. */
static void take_number(struct etch_replay *r, uint32_t value)
{
    struct etch_replay_context *c = r->c;
    const struct etch_soft_function *f = etch_replay_function(r);
    uint32_t node;

    if (f->tells > ETCH_SOFT_PATHS && c->high < 0) {
        c->high = (int)value;
        return;
    }
    node = told_node(f, (c->high < 0 ? 0 : (uint32_t)c->high) * ETCH_SOFT_PATHS + value);
    if (node == UINT32_MAX || (c->state == ETCH_REPLAY_AT_TARGET && node != c->node)) {
        etch_replay_lose(r, "a computed goto to where none is");
        return;
    }
    if (c->state == ETCH_REPLAY_AT_GOTO && !etch_replay_reach(r, node))
        return;
    c->state = ETCH_REPLAY_AT_NODE;
}

void etch_replay_take_path(struct etch_replay *r, uint8_t byte)
{
    struct etch_replay_context *c = r->c;
    uint32_t value = byte - (uint32_t)ETCH_SOFT_PATH;

    if (etch_replay_place(c) == ETCH_REPLAY_OUTSIDE)
        etch_replay_lose(r, etch_replay_went_on);
    if (c->state == ETCH_REPLAY_LOST || !etch_replay_go_to_byte(r))
        return;
    switch (c->state) {
    case ETCH_REPLAY_AT_GOTO:
    case ETCH_REPLAY_AT_TARGET:
        take_number(r, value);
        break;
    case ETCH_REPLAY_AT_NODE:
        c->signal_ip = 0;
        if (value < etch_replay_function(r)->node[c->node].paths)
            etch_replay_go(r, value);
        else
            etch_replay_lose(r, no_path);
        break;
    default:
        etch_replay_lose(r, etch_replay_disagrees);
        break;
    }
}
