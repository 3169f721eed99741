/* SPDX-License-Identifier: MIT */
/* Edges from the life of threads: create, start, exit, join. */
#include "decoder/order/sync.h"

#include <stdlib.h>
#include <string.h>

/* The lives of one thread handle: it is used again only after the thread before it has been joined. */
struct lives {
    uint32_t *creates, *starts;
    size_t n_creates, n_starts;
};

static int by_hi(const void *x, const void *y, void *context)
{
    const struct etch_order *o = context;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    if (o->hi[a] != o->hi[b])
        return o->hi[a] < o->hi[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Does starts[i] certainly belong to creates[i], for all i? With one create there is no question. With more, all by one
 * thread, the i-th start belongs to the i-th create if it happened before the next create. */
static bool lives_pair(struct etch_order *o, struct lives *lives)
{
    if (lives->n_creates != lives->n_starts || lives->n_creates == 0)
        return false;
    if (o->sync_lost)
        return false; /* a create and a start of one handle may be of two lives, each of which lost the other half */
    if (lives->n_creates == 1)
        return true;
    qsort_r(lives->starts, lives->n_starts, sizeof(*lives->starts), by_hi, o);
    for (size_t i = 0; i + 1 < lives->n_creates; i++)
        if (o->thread[lives->creates[i]] != o->thread[lives->creates[i + 1]] ||
            o->hi[lives->starts[i]] >= o->lo[lives->creates[i + 1]])
            return false;
    return true;
}

/* The life that a join ended: the last one created before it by the joining thread itself, or the only one. Several
 * lives that pair were all created by one thread, and are in its order. */
static size_t life_of_join(const struct etch_order *o, const struct lives *lives, uint32_t join)
{
    size_t lo = 0, hi = lives->n_creates;

    if (lives->n_creates == 1)
        return 0;
    if (o->thread[lives->creates[0]] != o->thread[join])
        return SIZE_MAX;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (o->position[lives->creates[mid]] < o->position[join])
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : SIZE_MAX;
}

/* The last event of the life that begins with `start`: another thread may use the same thread id later. */
static uint32_t end_of_life(const struct etch_order *o, uint32_t start)
{
    uint32_t thread = o->thread[start];
    uint32_t at = o->position[start];

    while (at + 1 < etch_thread_size(o, thread)) {
        const struct etch_event *next = &o->in->events[etch_event_at(o, thread, at + 1)];

        if (next->kind == ETCH_EVENT_SYNC && next->op == ETCH__SYNC_OP__SYNC_THREAD_START)
            break;
        at++;
    }
    return etch_event_at(o, thread, at);
}

/* Does the thread have only this one life, in all its sequences? */
static bool only_life(const struct etch_order *o, uint32_t start)
{
    uint32_t thread = o->thread[start];

    for (uint32_t k = 0; k < etch_thread_size(o, thread); k++) {
        uint32_t e = etch_event_at(o, thread, k);

        if (e != start && o->in->events[e].kind == ETCH_EVENT_SYNC &&
            o->in->events[e].op == ETCH__SYNC_OP__SYNC_THREAD_START)
            return false;
    }
    return true;
}

/* The create is before every event of the thread, in each of its sequences. The join is behind every event, even if the
 * thread's exit was not recorded. `join` is ETCH_NO_EVENT for the create, and the other way around. */
static bool link_life(struct etch_order *o, uint32_t create, uint32_t start, uint32_t join)
{
    uint32_t thread = o->thread[start];

    if (create != ETCH_NO_EVENT ? !etch_order_edge(o, create, start, ETCH_BY_CREATE)
                                : !etch_order_edge(o, end_of_life(o, start), join, ETCH_BY_JOIN))
        return false;
    if (o->sibling[thread] == thread || !only_life(o, start))
        return true;
    for (uint32_t t = o->sibling[thread]; t != thread; t = o->sibling[t]) {
        uint32_t size = etch_thread_size(o, t);

        if (size && (create != ETCH_NO_EVENT ? !etch_order_edge(o, create, etch_event_at(o, t, 0), ETCH_BY_CREATE)
                                             : !etch_order_edge(o, etch_event_at(o, t, size - 1), join, ETCH_BY_JOIN)))
            return false;
    }
    return true;
}

static bool list_lives(const struct etch_order *o, const struct keyed *v, size_t n, struct lives *lives)
{
    lives->creates = malloc(n * sizeof(*lives->creates));
    lives->starts = malloc(n * sizeof(*lives->starts));
    if (!lives->creates || !lives->starts)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i].event];

        if (e->op == ETCH__SYNC_OP__SYNC_THREAD_CREATE && e->result == 0)
            lives->creates[lives->n_creates++] = v[i].event;
        if (e->op == ETCH__SYNC_OP__SYNC_THREAD_START)
            lives->starts[lives->n_starts++] = v[i].event;
    }
    return true;
}

static bool link_lives(struct etch_order *o, const struct lives *lives, const struct keyed *v, size_t n)
{
    for (size_t i = 0; i < lives->n_creates; i++)
        if (!link_life(o, lives->creates[i], lives->starts[i], ETCH_NO_EVENT))
            return false;
    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i].event];
        size_t life;

        if (e->op != ETCH__SYNC_OP__SYNC_THREAD_JOIN || e->result != 0)
            continue;
        life = life_of_join(o, lives, v[i].event);
        if (life != SIZE_MAX && !link_life(o, ETCH_NO_EVENT, lives->starts[life], v[i].event))
            return false;
    }
    return true;
}

static bool link_handle(struct etch_order *o, const struct keyed *v, size_t n)
{
    struct lives lives = {0};
    bool good = list_lives(o, v, n, &lives);

    if (good && lives_pair(o, &lives))
        good = link_lives(o, &lives, v, n);
    free(lives.creates);
    free(lives.starts);
    return good;
}

bool etch_order_link_threads(struct etch_order *o)
{
    struct keyed_list list;
    bool good = etch_sync_events(o, OP(THREAD_CREATE) | OP(THREAD_START) | OP(THREAD_JOIN), &list);

    for (size_t i = 0, end; good && i < list.n; i = end) {
        end = etch_sync_group_end(&list, i);
        good = link_handle(o, list.v + i, end - i);
    }
    free(list.v);
    return good;
}
