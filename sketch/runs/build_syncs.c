/* SPDX-License-Identifier: MIT */
/* Which of the user's lines a synchronisation event is of. An event has the return address of its call; in C++ that
 * call is in a header's code, the same for every lock of the program. A thread's events and its steps are in the same
 * order, and are gone through together: the walk knows who called the header's code. */
#include "sketch/runs/build_model.h"

/* True for a later event of the same call. */
static bool goes_on(const Etch__Sync *last, const Etch__Sync *next)
{
    return next->caller == last->caller && next->object == last->object &&
           ((last->op == ETCH__SYNC_OP__SYNC_MUTEX_BLOCKED && next->op == ETCH__SYNC_OP__SYNC_MUTEX_LOCK) ||
            (last->op == ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN && next->op == ETCH__SYNC_OP__SYNC_COND_WAIT_END) ||
            (last->op == ETCH__SYNC_OP__SYNC_BARRIER_ENTER && next->op == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE));
}

/* True if the steps can show the call. With the software recorder only the program's own calls have steps. */
static bool is_stepped(const struct build *b, const Etch__Sync *sync)
{
    return sync->caller && (!etch_build_is_soft(b) || etch_build_is_program(b, etch_build_image_at(b, sync->caller)));
}

/* The thread's next event whose call can be seen; the number of events where there is none. */
static size_t next_of(const struct build *b, uint32_t tid, size_t at)
{
    while (at < b->recording->syncs.n &&
           (b->recording->syncs.v[at].tid != tid || !is_stepped(b, &b->recording->syncs.v[at])))
        at++;
    return at;
}

void etch_walk_take_syncs(struct build *b, struct walk *w, const struct etch_step *call)
{
    const Etch__Sync *syncs = b->recording->syncs.v;
    size_t at = w->next_sync = next_of(b, w->tid, w->next_sync), last;
    uint32_t place;

    if (!b->sync_places.n || at == b->recording->syncs.n)
        return;
    if (w->lost) /* calls are missing, and their events are passed over */
        while (at < b->recording->syncs.n && syncs[at].caller != call->end)
            at = next_of(b, w->tid, at + 1);
    if (at == b->recording->syncs.n || syncs[at].caller != call->end)
        return;
    place = etch_walk_own_place(b, w, call->last);
    do {
        b->sync_places.v[at] = place;
        last = at;
        at = next_of(b, w->tid, at + 1);
    } while (at < b->recording->syncs.n && goes_on(&syncs[last], &syncs[at]));
    w->next_sync = at;
}

int etch_build_list_syncs(struct build *b, struct etch_error *err)
{
    for (size_t i = 0; i < b->recording->syncs.n; i++)
        if (!etch_array_push(&b->sync_places, ETCH_NOWHERE))
            return etch_error_no_memory(err);
    return 0;
}

uint32_t etch_build_sync_place(struct build *b, size_t sync)
{
    const Etch__Sync *from = &b->recording->syncs.v[sync];
    uint32_t place = sync < b->sync_places.n ? b->sync_places.v[sync] : ETCH_NOWHERE;

    if (place == ETCH_NOWHERE && from->caller)
        place = etch_build_place_of(b, etch_build_image_at(b, from->caller), from->caller - 1);
    return place;
}
