/* SPDX-License-Identifier: MIT */
/* Edges from locks: two threads cannot hold one mutex at once. */
#include "decoder/order/sync.h"

#include <stdlib.h>
#include <string.h>

#define HELD_MAX 64   /* locks that one thread is followed through holding at a time */
#define NEIGHBOURS 12 /* sections looked back at for one that is certainly before */

struct held {
    uint64_t object;
    uint32_t event;
    uint32_t depth;
    bool shared;
};

struct holding {
    struct held v[HELD_MAX];
    size_t n;
    bool incomplete; /* it may hold more than this: records were lost, or it was too much to follow */
};

static bool add_section(struct etch_order *o, struct section section)
{
    return etch_order_excluded(o, section.object) || etch_array_push(&o->sections, section);
}

/* A moment at which the lock was held. */
static bool add_moment(struct etch_order *o, uint64_t object, uint32_t event, bool shared)
{
    return add_section(o, (struct section){.object = object, .first = event, .last = event, .shared = shared});
}

static bool acquire(struct etch_order *o, struct holding *h, uint64_t object, uint32_t event, bool shared)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].object == object) {
            h->v[i].depth++;
            return true;
        }
    if (h->n == HELD_MAX) {
        h->incomplete = true;
        o->held_bounded++;
        return add_moment(o, object, event, shared);
    }
    h->v[h->n++] = (struct held){.object = object, .event = event, .depth = 1, .shared = shared};
    return true;
}

/* `all`: a condition wait releases the lock at any depth. A release without a recorded acquire says nothing if records
 * are missing. If no records are missing, the thread did not hold the lock: a bug that recorded programs do have. From
 * then on the lock excludes nobody. */
static bool release(struct etch_order *o, struct holding *h, uint64_t object, uint32_t event, bool all)
{
    for (size_t i = 0; i < h->n; i++) {
        struct held held = h->v[i];

        if (held.object != object)
            continue;
        if (--h->v[i].depth > 0 && !all)
            return true;
        h->v[i] = h->v[--h->n];
        return add_section(
            o, (struct section){.object = object, .first = held.event, .last = event, .shared = held.shared});
    }
    return h->incomplete ||
           add_section(o, (struct section){.object = object, .first = event, .last = event, .misused = true});
}

/* After a loss, and at the end, only the acquire is known of the locks that are still held. */
static bool forget(struct etch_order *o, struct holding *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (!add_moment(o, h->v[i].object, h->v[i].event, h->v[i].shared))
            return false;
    h->n = 0;
    h->incomplete = true;
    return true;
}

static bool section_step(struct etch_order *o, struct holding *h, uint32_t event)
{
    const struct etch_event *e = &o->in->events[event];

    if (e->kind == ETCH_EVENT_LOSS)
        return forget(o, h);
    if (e->kind != ETCH_EVENT_SYNC)
        return true;
    switch (e->op) {
    case ETCH__SYNC_OP__SYNC_MUTEX_LOCK:
    case ETCH__SYNC_OP__SYNC_SPIN_LOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK:
        return e->result != 0 || acquire(o, h, e->object, event, false);
    case ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK:
        return e->result != 0 || acquire(o, h, e->object, event, true);
    case ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK:
    case ETCH__SYNC_OP__SYNC_SPIN_UNLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_UNLOCK:
        return release(o, h, e->object, event, false);
    case ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN:
        return release(o, h, e->other, event, true);
    case ETCH__SYNC_OP__SYNC_COND_WAIT_END:
        return acquire(o, h, e->other, event, false);
    default:
        return true;
    }
}

bool etch_order_collect_sections(struct etch_order *o)
{
    for (uint32_t t = 0; t < o->threads; t++) {
        const struct etch_event *first = etch_thread_size(o, t) ? &o->in->events[etch_event_at(o, t, 0)] : NULL;
        bool anywhere = first && first->kind == ETCH_EVENT_LOSS;
        struct holding h = {.n = 0};

        for (uint32_t k = 0; k < etch_thread_size(o, t); k++)
            if (!section_step(o, &h, etch_event_at(o, t, k)) || (anywhere && !forget(o, &h)))
                return false;
        if (!forget(o, &h))
            return false;
    }
    return true;
}

static int by_object_and_time(const void *x, const void *y, void *context)
{
    const struct etch_order *o = context;
    const struct section *a = x;
    const struct section *b = y;

    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (o->u[a->first] != o->u[b->first])
        return o->u[a->first] < o->u[b->first] ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* One of two sections of a lock ended before the other began. If i's acquire is before j's release, it was i. Returns
 * new edges, -1 when memory is short; `certain` says whether the order of the two is known. */
static int64_t link_sections(struct etch_order *o, const struct section *i, const struct section *j, bool *certain)
{
    *certain = true;
    if (o->thread[i->first] == o->thread[j->first])
        return 0;
    if (etch_order_before(o, i->first, j->last)) {
        if (etch_order_before(o, i->last, j->first))
            return 0;
        return etch_order_edge(o, i->last, j->first, ETCH_BY_LOCK) ? 1 : -1;
    }
    if (etch_order_before(o, j->first, i->last)) {
        if (etch_order_before(o, j->last, i->first))
            return 0;
        return etch_order_edge(o, j->last, i->first, ETCH_BY_LOCK) ? 1 : -1;
    }
    *certain = false;
    return 0;
}

/* The sections of one lock, by time. */
static int64_t derive_lock(struct etch_order *o, const struct section *v, size_t n)
{
    int64_t found = 0;

    for (size_t j = 1; j < n; j++) {
        bool closed = j <= NEIGHBOURS; /* all sections before it are accounted for */

        for (size_t back = 1; back <= NEIGHBOURS && back <= j; back++) {
            const struct section *theirs = &v[j - back];
            bool certain;
            int64_t news;

            if (theirs->shared && v[j].shared)
                continue;
            news = link_sections(o, theirs, &v[j], &certain);
            if (news < 0)
                return news;
            found += news;
            if (certain && !theirs->shared) {
                closed = true; /* a section before theirs is before v[j] too */
                break;
            }
        }
        o->bounded += !closed;
    }
    return found;
}

int64_t etch_order_derive_locks(struct etch_order *o)
{
    int64_t found = 0;

    if (o->turns == 1 && o->sections.n)
        qsort_r(o->sections.v, o->sections.n, sizeof(struct section), by_object_and_time, o);
    for (size_t begin = 0, end; begin < o->sections.n; begin = end) {
        bool misused = false;
        int64_t news;

        for (end = begin; end < o->sections.n && o->sections.v[end].object == o->sections.v[begin].object; end++)
            misused |= o->sections.v[end].misused;
        news = misused ? 0 : derive_lock(o, &o->sections.v[begin], end - begin);
        if (news < 0)
            return news;
        found += news;
    }
    return found;
}
