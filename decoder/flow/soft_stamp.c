/* SPDX-License-Identifier: MIT */
/* The records TIME and HELD of a software recorder's ring: between which of the replayed steps they were written. */
#include "decoder/flow/soft_replay.h"

/* The stamp that the walk has come to. 0: the chunk had no room for the stamp, and has no later stamps either; or the
 * lock was free. */
static uint64_t next_stamp(struct etch_replay *r, uint8_t record)
{
    struct etch_replay_stamps *s = &r->stamps;
    uint64_t tsc = 0;

    if (s->passed < s->read.n)
        return s->read.v[s->passed].record == record ? s->read.v[s->passed++].tsc : 0;
    if (s->end - s->ahead >= (ptrdiff_t)ETCH_SOFT_TIME_SIZE && *s->ahead == record) {
        tsc = etch_replay_word(s->ahead + 1);
        s->ahead += ETCH_SOFT_TIME_SIZE;
        s->taken++;
    }
    return tsc;
}

void etch_replay_pass_stamp(struct etch_replay *r, uint8_t record)
{
    uint64_t tsc = next_stamp(r, record);

    if (!tsc)
        return;
    etch_step_buffer_until(r->buffer, tsc, 0);
    r->low = tsc > r->low ? tsc : r->low;
    etch_step_buffer_time(r->buffer, r->low, 0);
}

void etch_replay_drop_stamps(struct etch_replay *r)
{
    if (r->stamps.passed < r->stamps.read.n)
        r->pending = r->stamps.read.v[r->stamps.read.n - 1].tsc;
    r->stamps.read.n = r->stamps.passed = 0;
}

/* The steps so far are not after the stamp. */
static void stamp(struct etch_replay *r, uint64_t tsc)
{
    etch_step_buffer_until(r->buffer, tsc, 0);
    etch_step_buffer_time(r->buffer, r->low, 0);
}

void etch_replay_stamp_somewhere(struct etch_replay *r, uint64_t tsc)
{
    stamp(r, tsc);
    r->pending = tsc;
}

void etch_replay_take_time(struct etch_replay *r, uint8_t record, uint64_t tsc)
{
    if (r->stamps.taken) {
        r->stamps.taken--;
        return;
    }
    if (!r->map->stamps.n || etch_replay_is_unplaced(r->c)) {
        etch_replay_stamp_somewhere(r, tsc);
        return;
    }
    stamp(r, tsc);
    if (!etch_array_push(&r->stamps.read, ((struct etch_replay_stamp){tsc, record})))
        r->failed = true;
}

void etch_replay_apply_stamp(struct etch_replay *r)
{
    etch_replay_drop_stamps(r);
    if (r->pending > r->low)
        etch_step_buffer_time(r->buffer, r->low = r->pending, 0);
    r->pending = 0;
}
