/* SPDX-License-Identifier: MIT */
/* The records of a software recorder's ring: which state each leads to. soft_replay.h has the table. */
#include "decoder/flow/soft_replay.h"

static uint32_t half_at(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* The state that LEFT leads to, if the function that is entered now returns. */
static enum etch_replay_state after_left(const struct etch_replay_context *c)
{
    enum etch_replay_state place = etch_replay_place(c);

    return place == ETCH_REPLAY_AT_GOTO ? ETCH_REPLAY_AT_NODE : place;
}

static void take_entry(struct etch_replay *r, uint64_t address)
{
    struct etch_replay_context *c = r->c;
    uint32_t function = etch_soft_map_function(r->map, address);

    etch_replay_go_silently(r);
    if (function == UINT32_MAX) {
        etch_replay_lose(r, "a function was entered that the binaries do not have");
        return;
    }
    if (!etch_replay_is_unplaced(c)) {
        struct etch_replay_frame f = {.kind = ETCH_FRAME_OUTSIDE, .function = c->function, .node = c->node};

        f.after_left = after_left(c);
        if (etch_replay_in_segment(c))
            etch_replay_report_rest(r);
        f.position = c->position;
        if (!etch_replay_push(r, f))
            return;
        etch_replay_event(r, ETCH_STEP_END, 0, 0);
    }
    etch_replay_event(r, ETCH_STEP_BEGIN, address, 0);
    etch_replay_enter(r, function);
}

/* Goes on to where the record in hand was written. Returns false where the thread is not known to be anywhere. */
static bool go_to_record(struct etch_replay *r)
{
    if (etch_replay_place(r->c) == ETCH_REPLAY_OUTSIDE)
        etch_replay_lose(r, etch_replay_went_on);
    return r->c->state != ETCH_REPLAY_LOST && etch_replay_go_to_byte(r);
}

/* Takes OUT: a stub was called. */
static void take_out(struct etch_replay *r)
{
    if (!go_to_record(r))
        return;
    if (r->c->state == ETCH_REPLAY_AT_STUB)
        r->c->state = ETCH_REPLAY_CALLED_OUT;
    else
        etch_replay_lose(r, etch_replay_disagrees);
}

/* A guard reports that it called a function of another module, in place of its own. */
static void take_replaced(struct etch_replay *r)
{
    struct etch_replay_context *c = r->c;

    if (!go_to_record(r))
        return;
    if (c->state != ETCH_REPLAY_AT_GUARD || c->guard != r->replaced) {
        etch_replay_lose(r, etch_replay_disagrees);
        return;
    }
    etch_replay_event(r, ETCH_STEP_END, c->guard, 0);
    if (c->position.now)
        etch_replay_event(r, ETCH_STEP_BEGIN, c->position.now, 0);
    c->state = ETCH_REPLAY_CALLED_OUT;
}

/* A function that was entered from outside returned. */
static void take_left(struct etch_replay *r)
{
    struct etch_replay_context *c = r->c;
    uint32_t node;

    if (c->state == ETCH_REPLAY_LOST)
        return;
    if (c->state != ETCH_REPLAY_RETURNED && c->state != ETCH_REPLAY_OUTSIDE && !etch_replay_go_to_byte(r))
        return;
    if (c->state != ETCH_REPLAY_RETURNED && etch_replay_in_segment(c) && etch_replay_only_end(r, &node) &&
        etch_replay_returns_outside(r, node))
        etch_replay_go(r, 0);
    if (c->state == ETCH_REPLAY_RETURNED)
        c->state = c->after_left;
    else
        etch_replay_lose(r, c->state == ETCH_REPLAY_OUTSIDE ? etch_replay_went_on : etch_replay_disagrees);
}

static bool is_called_out(const struct etch_replay_context *c)
{
    enum etch_replay_state place = etch_replay_place(c);

    return place == ETCH_REPLAY_CALLED_OUT || place == ETCH_REPLAY_AT_STUB || place == ETCH_REPLAY_AT_GUARD;
}

/* Compiled code called the function through a pointer. */
static void take_passed(struct etch_replay *r, uint64_t address)
{
    struct etch_replay_context *c = r->c;
    uint32_t function = etch_soft_map_function(r->map, address);
    bool left_due;

    etch_replay_go_silently(r);
    if (!is_called_out(c) || c->node == ETCH_REPLAY_NO_NODE || function == UINT32_MAX) {
        take_entry(r, address);
        return;
    }
    etch_replay_event(r, ETCH_STEP_END, address, 0);
    etch_replay_event(r, ETCH_STEP_BEGIN, address, 0);
    left_due = c->state == ETCH_REPLAY_RETURNED;
    if (!etch_replay_push(r, etch_replay_frame_behind(r)) || !etch_replay_enter(r, function) || !left_due)
        return;
    c->after_left = c->state; /* the LEFT of the frame below is still due */
    c->state = ETCH_REPLAY_RETURNED;
}

/* The thread, or a handler, left compiled code for good. */
static void take_end(struct etch_replay *r)
{
    struct etch_replay_context *c = r->c;

    if (c->state == ETCH_REPLAY_LOST)
        return;
    if (c->state == ETCH_REPLAY_OUTSIDE)
        etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_DECODE, etch_replay_went_on);
    etch_replay_go_to_byte(r);
    c->state = ETCH_REPLAY_OUTSIDE;
    c->frames.n = 0;
    etch_replay_event(r, ETCH_STEP_END, 0, 0);
}

size_t etch_replay_record_size(const uint8_t *at, size_t size)
{
    struct etch_soft_sync sync;
    size_t n = 1;

    switch (*at) {
    case ETCH_SOFT_NOTHING:
        return 0;
    case ETCH_SOFT_ENTRY:
        n = ETCH_SOFT_ENTRY_SIZE;
        break;
    case ETCH_SOFT_PASSED:
        n = ETCH_SOFT_PASSED_SIZE;
        break;
    case ETCH_SOFT_DARK:
    case ETCH_SOFT_GONE_DARK:
        n = ETCH_SOFT_DARK_SIZE;
        break;
    case ETCH_SOFT_HELD:
    case ETCH_SOFT_TIME:
        n = ETCH_SOFT_TIME_SIZE;
        break;
    case ETCH_SOFT_SYNC:
        if (size < 1 + sizeof(sync))
            return 0;
        memcpy(&sync, at + 1, sizeof(sync));
        n = 1 + sizeof(sync) + 8 * (size_t)sync.frames;
        break;
    default:
        break;
    }
    return n <= size ? n : 0;
}

/* ---- Guards ---- */

/* The function or the guard that a PASSED names. */
static uint64_t passed_address(const struct etch_replay *r, const uint8_t *at)
{
    return etch_soft_map_address(r->map, half_at(at + 1),
                                 r->c->state == ETCH_REPLAY_LOST ? 0 : etch_replay_function(r)->address);
}

/* The chunk changed right before the call at hand: the SYNC does not say where the call led. */
static bool is_before_call(const struct etch_replay *r, const uint8_t *at)
{
    const struct etch_soft_place *flush;
    const struct etch_soft_function *f;
    struct etch_soft_sync sync;

    memcpy(&sync, at + 1, sizeof(sync));
    flush = sync.flags & (ETCH_SOFT_OUTSIDE | ETCH_SOFT_LANDED) ? NULL : etch_soft_map_flush(r->map, sync.where);
    if (!flush || flush->function != r->c->function)
        return false;
    f = etch_replay_function(r);
    return f->node[flush->node].kind == ETCH_SOFT_CALL && f->edge[f->node[flush->node].first_edge].target == r->c->node;
}

/* AT_GUARD: the guarded function runs, unless the record reports that it was replaced. */
static bool look_at_guard(struct etch_replay *r, const uint8_t *at)
{
    uint64_t passed = *at == ETCH_SOFT_PASSED ? passed_address(r, at) : 0;

    if (*at == ETCH_SOFT_SYNC && r->c->state == ETCH_REPLAY_AT_GUARD && is_before_call(r, at))
        return true;
    r->replaced = passed && etch_soft_map_guarded(r->map, passed) != UINT32_MAX ? passed : 0;
    return r->c->state != ETCH_REPLAY_AT_GUARD || r->c->guard == r->replaced || etch_replay_pass_guard(r);
}

/* ---- All of them ---- */

static void take_sync(struct etch_replay *r, const uint8_t *at)
{
    struct etch_soft_sync sync;

    memcpy(&sync, at + 1, sizeof(sync));
    etch_replay_take_sync(r, &sync, at + 1 + sizeof(sync));
}

void etch_replay_take(struct etch_replay *r, const uint8_t *at)
{
    if (*at != ETCH_SOFT_TIME && *at != ETCH_SOFT_HELD && !look_at_guard(r, at))
        return;
    switch (*at) {
    case ETCH_SOFT_ENTRY:
        take_entry(r, etch_replay_word(at + 1));
        break;
    case ETCH_SOFT_PASSED:
        if (r->replaced)
            take_replaced(r);
        else
            take_passed(r, passed_address(r, at));
        break;
    case ETCH_SOFT_HELD:
    case ETCH_SOFT_TIME:
        etch_replay_take_time(r, *at, etch_replay_word(at + 1));
        return;
    case ETCH_SOFT_SYNC:
        take_sync(r, at);
        if (r->stamps.passed < r->stamps.read.n)
            return; /* no code was reported: the stamp is for the next byte */
        break;
    case ETCH_SOFT_OUT:
        take_out(r);
        break;
    case ETCH_SOFT_DARK:
        etch_replay_take_dark(r, passed_address(r, at), half_at(at + 5));
        break;
    case ETCH_SOFT_GONE_DARK:
        etch_replay_take_gone(r, passed_address(r, at));
        break;
    case ETCH_SOFT_LEFT:
        take_left(r);
        break;
    case ETCH_SOFT_END:
    case ETCH_SOFT_RETURNED:
        take_end(r);
        return;
    default:
        if (*at > ETCH_SOFT_PATHS) {
            etch_replay_lose(r, "a byte that no recorder writes");
            return;
        }
        etch_replay_take_path(r, *at);
        break;
    }
    etch_replay_apply_stamp(r);
}
