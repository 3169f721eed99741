/* SPDX-License-Identifier: MIT */
/* The frames of a replayed thread: who goes on when the function at hand returns, by the calls that were replayed or by
 * the return addresses of a SYNC. */
#include "decoder/flow/soft_replay.h"

#define CALL_SIZE 5u   /* of a direct call */
#define STUB_SIZE 192u /* more than any has, or any guard */

bool etch_replay_push(struct etch_replay *r, struct etch_replay_frame frame)
{
    if (etch_array_push(&r->c->frames, frame))
        return true;
    r->failed = true;
    return false;
}

struct etch_replay_frame etch_replay_frame_behind(const struct etch_replay *r)
{
    const struct etch_replay_context *c = r->c;

    return (struct etch_replay_frame){.function = c->function,
                                      .node = c->node,
                                      .position = c->position,
                                      .kind = c->position.now == 0 ? ETCH_FRAME_JUMPED
                                              : etch_replay_is_unmarked(r, c->function, c->node)
                                                  ? ETCH_FRAME_BARE
                                                  : ETCH_FRAME_BEHIND_CALL};
}

static void await_left(struct etch_replay_context *c, enum etch_replay_state after_left)
{
    c->state = ETCH_REPLAY_RETURNED;
    c->after_left = after_left;
}

static struct etch_replay_frame pop(struct etch_replay_context *c)
{
    struct etch_replay_frame f = c->frames.v[--c->frames.n];

    c->function = f.function;
    c->node = f.node;
    c->position = f.position;
    return f;
}

bool etch_replay_go_back(struct etch_replay *r)
{
    struct etch_replay_context *c = r->c;

    while (c->frames.n > 0) {
        struct etch_replay_frame f = pop(c);

        switch (f.kind) {
        case ETCH_FRAME_JUMPED:
            break;
        case ETCH_FRAME_OUTSIDE:
            etch_replay_event(r, ETCH_STEP_END, 0, 0);
            etch_replay_event(r, ETCH_STEP_BEGIN, f.position.now, 0);
            await_left(c, f.after_left);
            return true;
        case ETCH_FRAME_BEHIND_CALL:
            return etch_replay_reach(r, f.node);
        case ETCH_FRAME_BARE:
            if (!etch_replay_walk(r, ETCH_SOFT_TO_RETURN, 0))
                return false;
            break;
        }
    }
    await_left(c, ETCH_REPLAY_OUTSIDE);
    return true;
}

bool etch_replay_returns_outside(const struct etch_replay *r, uint32_t node)
{
    size_t n = r->c->frames.n;

    if (etch_replay_function(r)->node[node].kind != ETCH_SOFT_RETURN)
        return false;
    while (n > 0 && (r->c->frames.v[n - 1].kind == ETCH_FRAME_JUMPED || r->c->frames.v[n - 1].kind == ETCH_FRAME_BARE))
        n--;
    return n > 0 && r->c->frames.v[n - 1].kind == ETCH_FRAME_OUTSIDE;
}

bool etch_replay_frame_is_at(const struct etch_replay *r, size_t frame, uint64_t ip)
{
    const struct etch_replay_frame *f = &r->c->frames.v[frame];

    return f->kind != ETCH_FRAME_OUTSIDE && f->kind != ETCH_FRAME_JUMPED && f->position.from == ip;
}

/* How many of the addresses are of the activation at hand. */
static size_t own_frames(const uint8_t *addresses, size_t n)
{
    size_t own = 0;

    while (own < n && etch_replay_word(addresses + 8 * own) != 0)
        own++;
    return own;
}

size_t etch_replay_fits(const struct etch_replay *r, size_t bottom, size_t top, const struct etch_soft_sync *sync,
                        const uint8_t *addresses)
{
    size_t at = bottom, left = own_frames(addresses, sync->frames);

    for (; left > 0 && at < top; at++) {
        if (r->c->frames.v[at].kind == ETCH_FRAME_JUMPED)
            continue;
        if (!etch_replay_frame_is_at(r, at, etch_replay_word(addresses + 8 * (left - 1))))
            return SIZE_MAX;
        left--;
    }
    return left ? SIZE_MAX : at;
}

size_t etch_replay_activation(const struct etch_replay *r, size_t top)
{
    while (top > 0 && r->c->frames.v[top - 1].kind != ETCH_FRAME_OUTSIDE)
        top--;
    return top;
}

/* ---- From return addresses ---- */

uint64_t etch_replay_called_before(const struct etch_replay *r, uint64_t address)
{
    const char *why;
    const struct etch_block *b = etch_block_at(etch_soft_walks_view(r->walks), address - CALL_SIZE, &why);

    return b && b->branch == ETCH_BRANCH_CALL && b->count == 1 && b->end == address ? b->target : 0;
}

static bool is_in_stub(const struct etch_replay *r, uint64_t address)
{
    uint64_t stub = etch_soft_map_stub_before(r->map, address);

    return stub && address - stub < STUB_SIZE && etch_replay_called_before(r, address);
}

/* Code without frame pointers hides its caller: the address is then the caller's caller. So the answer is sure only
 * behind a stub, which has a frame, or where the call itself is seen to lead out. */
bool etch_replay_called_out(const struct etch_replay *r, uint64_t before, uint64_t address)
{
    uint64_t target = etch_replay_called_before(r, address);

    return is_in_stub(r, before) || (target && etch_soft_map_function(r->map, target) == UINT32_MAX &&
                                     etch_soft_map_guarded(r->map, target) == UINT32_MAX);
}

/* The frame behind a return address. `*other`: perhaps of code without a recorder. */
static struct etch_replay_frame frame_at(struct etch_replay *r, uint64_t address, bool *other)
{
    struct etch_replay_frame f = {.position = etch_soft_position_at(r->walks, address)};

    if (!etch_soft_next_node(r->walks, address, &f.function, &f.node)) {
        f.kind = ETCH_FRAME_BARE;
        *other = !etch_replay_is_dark_call(r, address, &f.function, &f.node);
    }
    return f;
}

bool etch_replay_build_frames(struct etch_replay *r, const uint8_t *addresses, size_t n)
{
    struct etch_replay_frame found[UINT8_MAX];
    size_t k = 0;
    bool entry = false; /* a 0 came before: the caller of an entry from outside is looked for */

    for (size_t i = 0; i < n; i++) {
        uint64_t address = etch_replay_word(addresses + 8 * i);
        uint64_t before = i ? etch_replay_word(addresses + 8 * (i - 1)) : 0;
        struct etch_replay_frame f;
        bool other = false;

        if (address == 0 && entry)
            break;
        if (address == 0) {
            entry = true;
            continue;
        }
        f = frame_at(r, address, &other);
        if (entry && other)
            continue;
        if (entry && before && !etch_replay_called_out(r, before, address))
            break;
        if (entry) {
            f.kind = ETCH_FRAME_OUTSIDE;
            f.after_left = ETCH_REPLAY_CALLED_OUT;
        }
        entry = false;
        found[k++] = f;
    }
    r->c->frames.n = 0;
    while (k > 0)
        if (!etch_replay_push(r, found[--k]))
            return false;
    return true;
}
