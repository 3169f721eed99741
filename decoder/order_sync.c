/* SPDX-License-Identifier: MIT */
/* Edges from synchronisation. What pairs with what is never guessed: a lock follows an unlock where mutual exclusion
 * leaves no other way, a wait follows a post where counting leaves no other way; see order.h. */
#include "decoder/order_graph.h"

#include <stdlib.h>
#include <string.h>

#define HELD_MAX 64    /* locks that one thread is followed through holding at a time */
#define NEIGHBOURS 12  /* sections looked back at for one that is certainly before */
#define WAIT_EVENTS 64 /* of a thread within one condition wait (signal handlers), at most */

/* All sync events whose op is in `ops` (a bit each), by object, then as they came. False when memory is short. */
static bool collect(const struct etch_order *o, uint64_t ops, struct keyed_list *list)
{
    size_t n = 0;

    memset(list, 0, sizeof(*list));
    for (size_t i = 0; i < o->n; i++)
        n += o->in->events[i].kind == ETCH_EVENT_SYNC && o->in->events[i].op < 64 && ops >> o->in->events[i].op & 1;
    list->v = malloc((n + 1) * sizeof(*list->v));
    if (!list->v)
        return false;
    for (size_t i = 0; i < o->n; i++) {
        const struct etch_event *e = &o->in->events[i];

        if (e->kind == ETCH_EVENT_SYNC && e->op < 64 && ops >> e->op & 1 && !etch_order_excluded(o, e->object))
            list->v[list->n++] = (struct keyed){.key = e->object, .event = (uint32_t)i};
    }
    etch_keyed_sort(list);
    return true;
}

static size_t group_end(const struct keyed_list *list, size_t begin)
{
    size_t end = begin;

    while (end < list->n && list->v[end].key == list->v[begin].key)
        end++;
    return end;
}

#define OP(name) (UINT64_C(1) << ETCH__SYNC_OP__SYNC_##name)

/* ---- Create, start, exit, join ---- */

/* The lives of one thread handle: it is used again only after the thread before it has been joined. */
struct lives {
    uint32_t creates[64], starts[64];
    size_t n_creates, n_starts;
};

static void sort_by_hi(const struct etch_order *o, uint32_t *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && o->hi[v[k]] < o->hi[v[k - 1]]; k--) {
            uint32_t swap = v[k];

            v[k] = v[k - 1];
            v[k - 1] = swap;
        }
}

/* Whether starts[i] is certainly of creates[i], for all i. With one create there is no question; with more, all by one
 * thread, the i-th start is known by having happened before the next create. */
static bool lives_pair(const struct etch_order *o, struct lives *lives)
{
    if (lives->n_creates != lives->n_starts || lives->n_creates == 0)
        return false;
    if (o->sync_lost)
        return false; /* a create and a start of one handle may be of two lives, each of which lost the other half */
    if (lives->n_creates == 1)
        return true;
    sort_by_hi(o, lives->starts, lives->n_starts);
    for (size_t i = 0; i + 1 < lives->n_creates; i++)
        if (o->thread[lives->creates[i]] != o->thread[lives->creates[i + 1]] ||
            o->hi[lives->starts[i]] >= o->lo[lives->creates[i + 1]])
            return false;
    return true;
}

/* Which life a join ended: the last one created before it by the joining thread itself, or the only one. */
static size_t life_of_join(const struct etch_order *o, const struct lives *lives, uint32_t join)
{
    size_t life = SIZE_MAX;

    if (lives->n_creates == 1)
        return 0;
    for (size_t i = 0; i < lives->n_creates; i++)
        if (o->thread[lives->creates[i]] == o->thread[join] && o->position[lives->creates[i]] < o->position[join])
            life = i;
    return life;
}

/* The last event of the life that begins with `start`: a thread id may be used again by another thread. */
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

/* Whether all of the thread, in whichever sequence, is of this one life. */
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

/* The create is before all that the thread does, the join behind all that it did, whether its exit was recorded or not:
 * in each of its sequences. `join` is ETCH_NO_EVENT for the create, and the other way around. */
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

static bool link_lives(struct etch_order *o, const struct keyed *v, size_t n)
{
    struct lives lives = {.n_creates = 0};

    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i].event];

        if (e->op == ETCH__SYNC_OP__SYNC_THREAD_CREATE && e->result == 0 && lives.n_creates < 64)
            lives.creates[lives.n_creates++] = v[i].event;
        if (e->op == ETCH__SYNC_OP__SYNC_THREAD_START && lives.n_starts < 64)
            lives.starts[lives.n_starts++] = v[i].event;
    }
    if (lives.n_creates == 64 || lives.n_starts == 64 || !lives_pair(o, &lives))
        return true;
    for (size_t i = 0; i < lives.n_creates; i++)
        if (!link_life(o, lives.creates[i], lives.starts[i], ETCH_NO_EVENT))
            return false;
    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i].event];
        size_t life;

        if (e->op != ETCH__SYNC_OP__SYNC_THREAD_JOIN || e->result != 0)
            continue;
        life = life_of_join(o, &lives, v[i].event);
        if (life != SIZE_MAX && !link_life(o, ETCH_NO_EVENT, lives.starts[life], v[i].event))
            return false;
    }
    return true;
}

static bool link_threads(struct etch_order *o)
{
    struct keyed_list list;
    bool good = collect(o, OP(THREAD_CREATE) | OP(THREAD_START) | OP(THREAD_JOIN), &list);

    for (size_t i = 0, end; good && i < list.n; i = end) {
        end = group_end(&list, i);
        good = link_lives(o, list.v + i, end - i);
    }
    free(list.v);
    return good;
}

/* ---- Barriers ---- */

/* The part that one thread took in a barrier: its enters and leaves, in turn. */
struct part {
    uint32_t thread;
    size_t enters, leaves;
};

/* Counts the parts of n events, which are sorted by thread and place. */
static bool same_parts(const struct etch_order *o, const uint32_t *v, size_t n, size_t *threads, size_t *generations)
{
    size_t enters = 0, leaves = 0, serial = 0, first_leaves = 0, inits = 0;
    uint64_t count = 0;

    *threads = 0;
    for (size_t i = 0; i < n; i++) {
        const struct etch_event *e = &o->in->events[v[i]];
        bool last = i + 1 == n || o->thread[v[i + 1]] != e->thread;

        enters += e->op == ETCH__SYNC_OP__SYNC_BARRIER_ENTER;
        leaves += e->op == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE;
        serial += e->op == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE && e->result != 0;
        if (e->op == ETCH__SYNC_OP__SYNC_BARRIER_INIT) {
            count = e->other;
            inits++;
        }
        if (!last)
            continue;
        if (enters == 0 && leaves == 0)
            continue; /* who only made it */
        if (*threads == 0)
            first_leaves = leaves;
        if (leaves != first_leaves || enters < leaves || enters > leaves + 1)
            return false;
        ++*threads;
        enters = leaves = 0;
    }
    *generations = first_leaves;
    /* Each generation has one serial thread, so as many threads as take part are let through at a time: each takes part
     * in each. */
    return first_leaves > 0 && !(inits && count == 0) && (serial == first_leaves || (inits == 1 && count == *threads));
}

static int by_thread_and_place(const void *x, const void *y, void *context)
{
    const struct etch_order *o = context;
    uint32_t a = *(const uint32_t *)x;
    uint32_t b = *(const uint32_t *)y;
    uint32_t ta = o->thread[a];
    uint32_t tb = o->thread[b];

    if (ta != tb)
        return ta < tb ? -1 : 1;
    return o->position[a] < o->position[b] ? -1 : o->position[a] > o->position[b];
}

/* Every enter of a generation is before every leave of it: enters[g * threads + t]. */
static bool link_generations(struct etch_order *o, const uint32_t *enters, const uint32_t *leaves, size_t threads,
                             size_t generations)
{
    for (size_t g = 0; g < generations; g++)
        for (size_t x = 0; x < threads; x++)
            for (size_t y = 0; y < threads; y++)
                if (!etch_order_edge(o, enters[g * threads + x], leaves[g * threads + y], ETCH_BY_BARRIER))
                    return false;
    return true;
}

static bool link_barrier(struct etch_order *o, const struct keyed *list, size_t n)
{
    uint32_t *v = malloc(3 * n * sizeof(*v));
    size_t threads, generations;
    bool good = v != NULL;

    for (size_t i = 0; good && i < n; i++)
        v[i] = list[i].event;
    if (good)
        qsort_r(v, n, sizeof(*v), by_thread_and_place, o);
    if (good && same_parts(o, v, n, &threads, &generations)) {
        uint32_t *enters = v + n, *leaves = v + 2 * n;
        size_t t = 0, enter = 0, leave = 0;

        for (size_t i = 0; i < n; i++) {
            const struct etch_event *e = &o->in->events[v[i]];
            bool last = i + 1 == n || o->thread[v[i + 1]] != e->thread;

            if (e->op == ETCH__SYNC_OP__SYNC_BARRIER_ENTER && enter++ < generations)
                enters[(enter - 1) * threads + t] = v[i];
            if (e->op == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE)
                leaves[leave++ * threads + t] = v[i];
            if (last && (enter || leave)) {
                t++;
                enter = leave = 0;
            }
        }
        good = link_generations(o, enters, leaves, threads, generations);
    }
    free(v);
    return good;
}

static bool link_barriers(struct etch_order *o)
{
    struct keyed_list list;
    bool good;

    if (o->sync_lost)
        return true; /* counting is worth nothing where some may be missing */
    good = collect(o, OP(BARRIER_INIT) | OP(BARRIER_ENTER) | OP(BARRIER_LEAVE), &list);
    for (size_t i = 0, end; good && i < list.n; i = end) {
        end = group_end(&list, i);
        good = link_barrier(o, list.v + i, end - i);
    }
    free(list.v);
    return good;
}

/* ---- One CPU's stamps, where its clock cannot be compared with others' ---- */

struct point {
    uint64_t tsc;
    uint32_t cpu, event;
    bool lo;
};

static int by_cpu_and_time(const void *x, const void *y)
{
    const struct point *a = x;
    const struct point *b = y;

    if (a->cpu != b->cpu)
        return a->cpu < b->cpu ? -1 : 1;
    if (a->tsc != b->tsc)
        return a->tsc < b->tsc ? -1 : 1;
    return a->lo == b->lo ? 0 : a->lo ? -1 : 1; /* equal is not before: lower bounds first */
}

static bool local_only(const struct etch_order *o, uint32_t cpu)
{
    return cpu < o->in->n_cpus && !o->in->cpus[cpu].known && o->in->cpus[cpu].local && !o->cpu_blamed[cpu] &&
           !o->clockless;
}

static bool collect_points(const struct etch_order *o, struct point **points, size_t *n)
{
    ETCH_ARRAY(struct point) list = {0};
    bool good = true;

    for (size_t i = 0; good && i < o->n; i++) {
        const struct etch_event *e = &o->in->events[i];
        struct point lo = {.tsc = e->lo.tsc, .cpu = e->lo.cpu, .event = (uint32_t)i, .lo = true};
        struct point hi = {.tsc = e->hi.tsc, .cpu = e->hi.cpu, .event = (uint32_t)i};

        good = (!local_only(o, lo.cpu) || etch_array_push(&list, lo)) &&
               (!local_only(o, hi.cpu) || etch_array_push(&list, hi));
    }
    *points = list.v;
    *n = list.n;
    return good;
}

/* Each thread's first lower bound after another thread's upper bound gets an edge; program order carries it on. */
static bool link_cpus(struct etch_order *o)
{
    struct point *points;
    size_t n;
    uint32_t last = ETCH_NO_EVENT, other = ETCH_NO_EVENT; /* the newest upper bounds of two different threads */
    bool good = collect_points(o, &points, &n);

    if (good && n)
        qsort(points, n, sizeof(*points), by_cpu_and_time);
    for (size_t i = 0; good && i < n; i++) {
        uint32_t e = points[i].event;
        uint32_t thread = o->thread[e];

        if (i > 0 && points[i].cpu != points[i - 1].cpu)
            last = other = ETCH_NO_EVENT;
        if (!points[i].lo) {
            if (last != ETCH_NO_EVENT && o->thread[last] != thread)
                other = last;
            last = e;
            continue;
        }
        if (last != ETCH_NO_EVENT && o->thread[last] != thread)
            good = etch_order_edge(o, last, e, ETCH_BY_CPU);
        else if (other != ETCH_NO_EVENT)
            good = etch_order_edge(o, other, e, ETCH_BY_CPU);
    }
    free(points);
    return good;
}

/* ---- Sections of locks ---- */

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
        return add_moment(o, object, event, shared);
    }
    h->v[h->n++] = (struct held){.object = object, .event = event, .depth = 1, .shared = shared};
    return true;
}

/* `all`: a condition wait gives the lock up however often it was taken. A release whose acquire was not seen says
 * nothing where records are missing. Where none are, the thread did not hold the lock: a program with such a bug is
 * just what is recorded here, and from then on the lock excludes nobody. */
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

/* After a loss, or at the end, of what is still held only the acquire is known. */
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

static bool collect_sections(struct etch_order *o)
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

/* What the caller knows. */
static bool link_program(struct etch_order *o)
{
    for (size_t i = 0; !o->unlinked && i < o->in->n_links; i++)
        if (!etch_order_edge(o, o->in->links[i].from, o->in->links[i].to, ETCH_BY_PROGRAM))
            return false;
    return true;
}

int etch_order_sync_collect(struct etch_order *o)
{
    if (!link_program(o))
        return -1;
    if (o->distrust)
        return link_cpus(o) ? 0 : -1;
    return link_threads(o) && link_barriers(o) && link_cpus(o) && collect_sections(o) ? 0 : -1;
}

/* Calls `derive` for the events of each object in the list. Returns the sum, or what is below 0. */
static int64_t derive_groups(struct etch_order *o, const struct keyed_list *list,
                             int64_t (*derive)(struct etch_order *o, const struct keyed *v, size_t n))
{
    int64_t found = 0;

    for (size_t i = 0, end; found >= 0 && i < list->n; i = end) {
        int64_t news;

        end = group_end(list, i);
        news = derive(o, list->v + i, end - i);
        found = news < 0 ? news : found + news;
    }
    return found;
}

/* ---- Locks ---- */

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
            if (certain && !theirs->shared)
                break; /* what is before that one is before this one too */
        }
    }
    return found;
}

static int64_t derive_locks(struct etch_order *o)
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

/* ---- Semaphores ---- */

/* What may end a wait: posts or signals, by thread and place. */
struct posters {
    const uint32_t *posts;
    size_t n_posts;
    size_t *begin; /* where each thread's begin; n_threads + 1 */
    size_t n_threads;
};

struct semaphore {
    struct posters by;
    const uint32_t *waits; /* by thread and place */
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

/* How many of v (sorted by U) are before `event` by the clocks. */
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

/* How many of the posts v of one thread may have been before `wait`. */
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

/* Where the posts of each thread begin. False when memory is short. */
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

/* A wait that has `needed` posts before it gets from each thread at least what the others cannot have given. */
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

/* Only one whose first value was seen, once. */
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
        qsort_r(lists, s.by.n_posts, sizeof(*lists), by_thread_and_place, o);
        qsort_r(lists + n, s.n_waits, sizeof(*lists), by_thread_and_place, o);
        found = split_posts(o, &s.by) ? derive_semaphore(o, &s, lists + 2 * n) : ETCH_DERIVE_MEMORY;
    }
    free(s.by.begin);
    free(lists);
    return found;
}

static int64_t derive_semaphores(struct etch_order *o)
{
    if (o->sync_lost)
        return 0;
    if (!o->posts.v && !collect(o, OP(SEM_INIT) | OP(SEM_POST) | OP(SEM_WAIT), &o->posts))
        return ETCH_DERIVE_MEMORY;
    return derive_groups(o, &o->posts, derive_semaphore_group);
}

/* ---- Conditions, where a wait is taken to end only when signalled ---- */

/* The beginning of the wait that ends with `end`; ETCH_NO_EVENT where it is not found. */
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

/* How many of the signals v of one thread are certainly before `event`. */
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

/* Somebody signalled between begin and end of the wait. If it can have been one thread only, then its first signal that
 * can have been the one is before the end: it was that one, or one behind it. */
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
    qsort_r(lists, signals.n_posts, sizeof(*lists), by_thread_and_place, o);
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

static int64_t derive_signals(struct etch_order *o)
{
    struct keyed_list list;
    int64_t found;

    if (o->sync_lost || !o->in->signals_wake)
        return 0;
    if (!collect(o, OP(COND_SIGNAL) | OP(COND_BROADCAST) | OP(COND_WAIT_END), &list))
        return ETCH_DERIVE_MEMORY;
    found = derive_groups(o, &list, derive_condition);
    free(list.v);
    return found;
}

int64_t etch_order_sync_derive(struct etch_order *o)
{
    int64_t locks = o->distrust ? 0 : derive_locks(o);
    int64_t semaphores = locks < 0 || o->distrust ? locks : derive_semaphores(o);
    int64_t signals = semaphores < 0 || o->distrust ? semaphores : derive_signals(o);

    return signals < 0 ? signals : locks + semaphores + signals;
}
