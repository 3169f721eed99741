/* SPDX-License-Identifier: MIT */
/* Which of the user's lines a synchronisation event is of. An event has the return address of its call; in C++ that
 * call is in a header's code, the same for every lock of the program. A thread's events and its steps are in the same
 * order, and are gone through together: the walk knows who called the header's code. */
#include "sketch/runs/build_model.h"

#include <stdlib.h>
#include <string.h>

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

static int by_site(const void *x, const void *y)
{
    const struct sync_call *a = x, *b = y;

    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->caller != b->caller)
        return a->caller < b->caller ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static int by_turn(const void *x, const void *y)
{
    const struct sync_call *a = x, *b = y;

    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* The first of `calls` that is not before `key`. */
static const struct sync_call *find(const struct sync_calls *calls, struct sync_call key,
                                    int (*compare)(const void *, const void *))
{
    size_t lo = 0, n = calls->n;

    while (n > 0) {
        size_t half = n / 2;

        if (compare(&calls->v[lo + half], &key) < 0) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo < calls->n ? &calls->v[lo] : NULL;
}

/* The thread's next event whose call can be seen, from `at` on; the number of events where there is none. */
static size_t next_of(const struct build *b, uint32_t tid, size_t at)
{
    const struct sync_call *c = find(&b->sync_turns, (struct sync_call){.tid = tid, .at = at}, by_turn);

    return c && c->tid == tid ? c->at : b->recording->syncs.n;
}

/* The same of the events of one call. */
static size_t next_at_site(const struct build *b, uint32_t tid, uint64_t caller, size_t at)
{
    const struct sync_call *c =
        find(&b->sync_sites, (struct sync_call){.tid = tid, .caller = caller, .at = at}, by_site);

    return c && c->tid == tid && c->caller == caller ? c->at : b->recording->syncs.n;
}

void etch_walk_take_syncs(struct build *b, struct walk *w, const struct etch_step *call)
{
    const Etch__Sync *syncs = b->recording->syncs.v;
    size_t at = w->next_sync, last;
    uint32_t place;

    if (!b->sync_places.n || !b->sync_turns.n)
        return;
    /* If calls are missing, their events are passed over. */
    at = w->lost ? next_at_site(b, w->tid, call->end, at) : next_of(b, w->tid, at);
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

/* Leaves the calls that the steps can show. They are sorted by site, so each site is looked up once for a thread. */
static void keep_stepped(struct build *b)
{
    struct sync_calls *c = &b->sync_sites;
    size_t kept = 0;
    bool stepped = false;

    for (size_t i = 0; i < c->n; i++) {
        if (i == 0 || c->v[i].caller != c->v[i - 1].caller)
            stepped = is_stepped(b, &b->recording->syncs.v[c->v[i].at]);
        if (stepped)
            b->sync_turns.v[kept++] = c->v[i];
    }
    b->sync_turns.n = kept;
}

int etch_build_list_syncs(struct build *b, struct etch_error *err)
{
    const Etch__Sync *syncs = b->recording->syncs.v;

    for (size_t i = 0; i < b->recording->syncs.n; i++) {
        struct sync_call call = {.tid = syncs[i].tid, .caller = syncs[i].caller, .at = i};

        if (!etch_array_push(&b->sync_places, ETCH_NOWHERE) || !etch_array_push(&b->sync_sites, call) ||
            !etch_array_push(&b->sync_turns, call))
            return etch_error_no_memory(err);
    }
    if (!b->sync_sites.n)
        return 0;
    qsort(b->sync_sites.v, b->sync_sites.n, sizeof(*b->sync_sites.v), by_site);
    keep_stepped(b);
    memcpy(b->sync_sites.v, b->sync_turns.v, b->sync_turns.n * sizeof(*b->sync_turns.v));
    b->sync_sites.n = b->sync_turns.n;
    qsort(b->sync_turns.v, b->sync_turns.n, sizeof(*b->sync_turns.v), by_turn);
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
