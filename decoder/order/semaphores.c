/* SPDX-License-Identifier: MIT */
/* Edges from counting: a wait follows a post if no other post can have ended it. Condition waits are counted alike, if
 * the caller states that they end only when signalled. */
#include "decoder/order/sync.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_EVENTS 64 /* most events of a thread within one condition wait (of signal handlers) */

/* The events that may end a wait: posts or signals, by thread and position. */
struct posters {
    const uint32_t *posts;
    size_t n_posts;
    size_t *begin; /* the index of each thread's first post; n_threads + 1 entries */
    size_t n_threads;
};

struct semaphore {
    struct posters by;
    const uint32_t *waits; /* by thread and position */
    size_t n_waits;
    uint64_t initial;
};

static int by_u(const void *x, const void *y, void *context)
{
    const struct etch_order *o = context;
    int64_t a = o->u[*(const uint32_t *)x];
    int64_t b = o->u[*(const uint32_t *)y];

    return a < b ? -1 : a > b;
}

/* The number of events of v (sorted by U) that are before `event` by the clocks. */
static size_t count_before(const struct etch_order *o, const uint32_t *v, size_t n, uint32_t event)
{
    size_t lo = 0;

    while (lo < n) {
        size_t middle = lo + (n - lo) / 2;

        if (o->u[v[middle]] < o->l[event])
            lo = middle + 1;
        else
            n = middle;
    }
    return lo;
}

/* The number of posts of one thread, v, that may have been before `wait`. */
static size_t possible_posts(const struct etch_order *o, const uint32_t *v, size_t n, uint32_t wait)
{
    size_t lo = 0;

    while (lo < n) {
        size_t middle = lo + (n - lo) / 2;

        if (etch_order_before(o, wait, v[middle]))
            n = middle;
        else
            lo = middle + 1;
    }
    return lo;
}

/* Finds the first post of each thread. False when memory is short. */
static bool split_posts(const struct etch_order *o, struct posters *s)
{
    s->begin = malloc(((size_t)o->threads + 1) * sizeof(*s->begin));
    if (!s->begin)
        return false;
    for (size_t i = 0; i < s->n_posts; i++)
        if (i == 0 || o->thread[s->posts[i]] != o->thread[s->posts[i - 1]])
            s->begin[s->n_threads++] = i;
    s->begin[s->n_threads] = s->n_posts;
    return true;
}

static size_t posts_of(const struct etch_order *o, const struct posters *s, size_t thread, uint32_t wait)
{
    return possible_posts(o, s->posts + s->begin[thread], s->begin[thread + 1] - s->begin[thread], wait);
}

/* A wait has `needed` posts before it. Each thread made at least as many of them as the other threads cannot have
 * made. */
static int64_t link_wait(struct etch_order *o, const struct posters *s, uint32_t wait, uint64_t needed)
{
    size_t all = 0;
    int64_t found = 0;

    for (size_t t = 0; t < s->n_threads; t++)
        all += posts_of(o, s, t, wait);
    for (size_t t = 0; t < s->n_threads; t++) {
        size_t mine = posts_of(o, s, t, wait);
        uint32_t post;

        if (needed <= all - mine || needed - (all - mine) > mine)
            continue;
        post = s->posts[s->begin[t] + (size_t)(needed - (all - mine)) - 1];
        if (etch_order_before(o, post, wait))
            continue;
        if (!etch_order_edge(o, post, wait, ETCH_BY_SEMAPHORE))
            return ETCH_DERIVE_MEMORY;
        found += o->thread[post] != o->thread[wait];
    }
    return found;
}

static int64_t derive_semaphore(struct etch_order *o, const struct semaphore *s, uint32_t *sorted)
{
    int64_t found = 0;
    uint64_t rank = 0;

    memcpy(sorted, s->waits, s->n_waits * sizeof(*sorted));
    qsort_r(sorted, s->n_waits, sizeof(*sorted), by_u, o);
    for (size_t i = 0; i < s->n_waits; i++) {
        bool same = i > 0 && o->thread[s->waits[i]] == o->thread[s->waits[i - 1]];
        uint64_t others = count_before(o, sorted, s->n_waits, s->waits[i]);
        uint64_t done;
        int64_t news;

        rank = same ? rank + 1 : 0;
        done = (others > rank ? others : rank) + 1;
        if (done <= s->initial)
            continue;
        news = link_wait(o, &s->by, s->waits[i], done - s->initial);
        if (news < 0)
            return news;
        found += news;
    }
    return found;
}

/* Only for a semaphore whose initialisation was seen exactly once. */
static int64_t derive_semaphore_group(struct etch_order *o, const struct keyed *v, size_t n)
{
    uint32_t *lists = malloc(3 * n * sizeof(*lists));
    struct semaphore s = {.by.posts = lists, .waits = lists + n};
    size_t inits = 0;
    int64_t found = 0;

    if (!lists)
        return ETCH_DERIVE_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i].event];

        if (e->op == ETCH__SYNC_OP__SYNC_SEM_INIT) {
            s.initial = e->other;
            inits++;
        } else if (e->op == ETCH__SYNC_OP__SYNC_SEM_POST) {
            lists[s.by.n_posts++] = v[i].event;
        } else if (e->result == 0) {
            lists[n + s.n_waits++] = v[i].event;
        }
    }
    if (inits == 1) {
        qsort_r(lists, s.by.n_posts, sizeof(*lists), etch_by_thread_and_place, o);
        qsort_r(lists + n, s.n_waits, sizeof(*lists), etch_by_thread_and_place, o);
        found = split_posts(o, &s.by) ? derive_semaphore(o, &s, lists + 2 * n) : ETCH_DERIVE_MEMORY;
    }
    free(s.by.begin);
    free(lists);
    return found;
}

int64_t etch_order_derive_semaphores(struct etch_order *o)
{
    if (o->sync_lost)
        return 0;
    if (!o->posts.v && !etch_sync_events(o, OP(SEM_INIT) | OP(SEM_POST) | OP(SEM_WAIT), &o->posts))
        return ETCH_DERIVE_MEMORY;
    return etch_sync_derive_groups(o, &o->posts, derive_semaphore_group);
}

/* The beginning of the wait that ends with `end`; ETCH_NO_EVENT: not found. */
static uint32_t wait_begin(const struct etch_order *o, uint32_t end)
{
    const struct etch_event *e = &o->in->events[end];

    for (uint32_t back = 1; back <= WAIT_EVENTS && back <= o->position[end]; back++) {
        uint32_t at = etch_event_at(o, e->thread, o->position[end] - back);
        const struct etch_event *other = &o->in->events[at];

        if (other->kind == ETCH_EVENT_SYNC && other->object == e->object &&
            other->op == ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN)
            return at;
    }
    return ETCH_NO_EVENT;
}

/* The number of signals of one thread, v, that are certainly before `event`. */
static size_t signals_before(const struct etch_order *o, const uint32_t *v, size_t n, uint32_t event)
{
    size_t lo = 0;

    while (lo < n) {
        size_t middle = lo + (n - lo) / 2;

        if (etch_order_before(o, v[middle], event))
            lo = middle + 1;
        else
            n = middle;
    }
    return lo;
}

/* A thread signalled between begin and end of the wait. If only one thread can have done so, its first possible signal
 * is before the end: the wait was ended by this signal or by a later signal of the same thread. */
static int64_t link_signal(struct etch_order *o, const struct posters *signals, uint32_t end)
{
    uint32_t begin = wait_begin(o, end), first = ETCH_NO_EVENT;

    if (begin == ETCH_NO_EVENT)
        return 0;
    for (size_t t = 0; t < signals->n_threads; t++) {
        const uint32_t *v = signals->posts + signals->begin[t];
        size_t n = signals->begin[t + 1] - signals->begin[t];
        size_t gone = signals_before(o, v, n, begin);

        if (gone >= possible_posts(o, v, n, end))
            continue;
        if (first != ETCH_NO_EVENT)
            return 0;
        first = v[gone];
    }
    if (first == ETCH_NO_EVENT || o->thread[first] == o->thread[end] || etch_order_before(o, first, end))
        return 0;
    return etch_order_edge(o, first, end, ETCH_BY_SIGNAL) ? 1 : ETCH_DERIVE_MEMORY;
}

static int64_t derive_condition(struct etch_order *o, const struct keyed *v, size_t n)
{
    uint32_t *lists = malloc(2 * n * sizeof(*lists));
    struct posters signals = {.posts = lists};
    size_t waits = 0;
    int64_t found = 0;

    if (!lists)
        return ETCH_DERIVE_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i].event];

        if (e->op != ETCH__SYNC_OP__SYNC_COND_WAIT_END)
            lists[signals.n_posts++] = v[i].event;
        else if (e->result == 0)
            lists[n + waits++] = v[i].event;
    }
    qsort_r(lists, signals.n_posts, sizeof(*lists), etch_by_thread_and_place, o);
    if (!split_posts(o, &signals))
        found = ETCH_DERIVE_MEMORY;
    for (size_t i = 0; found >= 0 && i < waits; i++) {
        int64_t news = link_signal(o, &signals, lists[n + i]);

        found = news < 0 ? news : found + news;
    }
    free(signals.begin);
    free(lists);
    return found;
}

int64_t etch_order_derive_signals(struct etch_order *o)
{
    struct keyed_list list;
    int64_t found;

    if (o->sync_lost || !o->in->signals_wake)
        return 0;
    if (!etch_sync_events(o, OP(COND_SIGNAL) | OP(COND_BROADCAST) | OP(COND_WAIT_END), &list))
        return ETCH_DERIVE_MEMORY;
    found = etch_sync_derive_groups(o, &list, derive_condition);
    free(list.v);
    return found;
}
