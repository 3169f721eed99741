/* SPDX-License-Identifier: MIT */
/* The merge: sets up the graph, derives edges until nothing new follows, and leaves out contradicting clocks and
 * records; see order.h. */
#include "decoder/order.h"

#include "base/assert.h"
#include "base/log.h"
#include "decoder/order/graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 6 /* most rounds of deriving; pairs not found by then stay unordered */

const char *etch_evidence_name(enum etch_evidence_kind kind)
{
    static const char *const names[] = {"program", "clock",  "cpu",     "create",    "join",
                                        "lock",    "signal", "barrier", "semaphore", "value"};

    return (unsigned)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

bool etch_order_edge(struct etch_order *o, uint32_t from, uint32_t to, enum etch_evidence_kind kind)
{
    struct edge edge = {.from = from, .to = to, .kind = (uint8_t)kind};

    if (o->thread[from] == o->thread[to])
        return true;
    return etch_array_push(&o->edges, edge);
}

static int by_key(const void *x, const void *y)
{
    const struct keyed *a = x;
    const struct keyed *b = y;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

void etch_keyed_sort(struct keyed_list *list)
{
    qsort(list->v, list->n, sizeof(*list->v), by_key);
}

bool etch_order_excluded(const struct etch_order *o, uint64_t object)
{
    for (size_t i = 0; i < o->excluded.n; i++)
        if (o->excluded.v[i] == object)
            return true;
    return false;
}

/* ---- Setting up ---- */

#define FAR (INT64_C(1) << 61) /* no TSC gets there in decades; differences of smaller times do not overflow */

/* A stamp in reference time. A stamp beyond FAR claims less: a lower bound moves down, an upper bound moves up. */
static int64_t shift(uint64_t tsc, int64_t by, bool lower)
{
    int64_t t = tsc > (uint64_t)FAR ? FAR + 1 : (int64_t)tsc;
    int64_t shifted;

    if (t > FAR && !lower)
        return INT64_MAX;
    if (__builtin_sub_overflow(t, by, &shifted))
        shifted = by > 0 ? INT64_MIN : INT64_MAX;
    if (shifted > FAR)
        return lower ? FAR : INT64_MAX;
    if (shifted < -FAR)
        return lower ? INT64_MIN : -FAR;
    return shifted;
}

static bool clock_usable(const struct etch_order *o, uint32_t cpu)
{
    return cpu < o->in->n_cpus && o->in->cpus[cpu].known && !o->cpu_blamed[cpu] && !o->clockless;
}

struct etch_cpu_range etch_cpu_range_any(const struct etch_cpu_range *cpus, uint32_t n)
{
    struct etch_cpu_range any = {.known = n > 0};

    for (uint32_t i = 0; i < n; i++) {
        any.known &= cpus[i].known;
        any.lo = i == 0 || cpus[i].lo < any.lo ? cpus[i].lo : any.lo;
        any.hi = i == 0 || cpus[i].hi > any.hi ? cpus[i].hi : any.hi;
    }
    return any;
}

static const struct etch_cpu_range *range_of(const struct etch_order *o, uint32_t cpu)
{
    if (cpu == ETCH_CPU_ANY)
        return o->any.known ? &o->any : NULL;
    return clock_usable(o, cpu) ? &o->in->cpus[cpu] : NULL;
}

static void set_times(struct etch_order *o)
{
    o->any = etch_cpu_range_any(o->in->cpus, o->in->n_cpus);
    for (uint32_t cpu = 0; cpu < o->in->n_cpus; cpu++)
        o->any.known &= clock_usable(o, cpu);
    for (size_t i = 0; i < o->n; i++) {
        const struct etch_event *e = &o->in->events[i];
        const struct etch_cpu_range *lo = range_of(o, e->lo.cpu), *hi = range_of(o, e->hi.cpu);

        o->lo[i] = lo ? shift(e->lo.tsc, lo->hi, true) : INT64_MIN;
        o->hi[i] = hi ? shift(e->hi.tsc, hi->lo, false) : INT64_MAX;
    }
}

static int set_threads(struct etch_order *o, struct etch_error *err)
{
    const struct etch_event *events = o->in->events;

    for (size_t i = 0; i < o->n; i++) {
        if (events[i].thread >= o->threads)
            return etch_error_set(err, "event %zu is of thread %u, and there are %u", i, events[i].thread, o->threads);
        o->thread[i] = events[i].thread;
        o->thread_begin[events[i].thread + 1]++;
        o->sync_lost |= events[i].kind == ETCH_EVENT_LOSS;
        o->access_lost |= events[i].kind == ETCH_EVENT_LOSS && events[i].access != ETCH_LOST_SYNC;
    }
    for (uint32_t t = 0; t < o->threads; t++)
        o->thread_begin[t + 1] += o->thread_begin[t];
    for (size_t i = o->n; i-- > 0;) { /* backwards: thread_begin[t + 1] moves down to where t begins */
        uint32_t at = --o->thread_begin[events[i].thread + 1];

        o->by_thread[at] = (uint32_t)i;
    }
    /* Each begin now stands one place too far up. */
    memmove(o->thread_begin, o->thread_begin + 1, o->threads * sizeof(*o->thread_begin));
    o->thread_begin[o->threads] = (uint32_t)o->n;
    for (uint32_t t = 0; t < o->threads; t++)
        for (uint32_t k = o->thread_begin[t]; k < o->thread_begin[t + 1]; k++)
            o->position[o->by_thread[k]] = k - o->thread_begin[t];
    return 0;
}

/* Sequences of one thread, in rings. */
static int set_siblings(struct etch_order *o, struct etch_error *err)
{
    const uint32_t *tasks = o->in->tasks;
    uint32_t *last;

    for (uint32_t t = 0; t < o->threads; t++) {
        o->sibling[t] = t;
        if (tasks && tasks[t] >= o->threads)
            return etch_error_set(err, "sequence %u is of thread %u, and there are %u", t, tasks[t], o->threads);
    }
    if (!tasks)
        return 0;
    last = malloc((o->threads + 1) * sizeof(*last));
    if (!last)
        return etch_error_no_memory(err);
    memset(last, 0xff, (o->threads + 1) * sizeof(*last));
    for (uint32_t t = 0; t < o->threads; t++) {
        uint32_t other = last[tasks[t]];

        if (other != UINT32_MAX) {
            o->sibling[t] = o->sibling[other];
            o->sibling[other] = t;
        }
        last[tasks[t]] = t;
    }
    free(last);
    return 0;
}

static void drop_lists(struct etch_order *o)
{
    free(o->posts.v);
    free(o->located.v);
    o->posts.v = o->located.v = NULL;
}

/* Turns until nothing new follows. */
static enum etch_order_result settle(struct etch_order *o)
{
    bool enough = false;

    o->edges.n = 0;
    o->sections.n = 0;
    o->held_bounded = 0;
    drop_lists(o);
    set_times(o);
    if (etch_order_sync_collect(o) < 0)
        return ETCH_ORDER_MEMORY;
    for (o->turns = 1;; o->turns++) {
        enum etch_order_result result = etch_order_pass(o);
        int64_t found, values;

        if (result != ETCH_ORDER_GOOD || o->turns == TURNS || enough)
            return result;
        o->bounded = 0;
        found = etch_order_sync_derive(o);
        values = etch_order_values_derive(o);
        if (values == ETCH_DERIVE_CONFLICT)
            return ETCH_ORDER_CONFLICT;
        if (found < 0 || values < 0)
            return ETCH_ORDER_MEMORY;
        if (found + values == 0)
            return ETCH_ORDER_GOOD;
        enough =
            (size_t)(found + values) < o->n / 1000; /* a large run: what a further turn would add is not worth it */
    }
}

/* The clock that was blamed stands in a contradiction with one other. If leaving it out does not settle everything, and
 * leaving out the other one instead does, it was the other one. */
static enum etch_order_result try_the_other(struct etch_order *o)
{
    struct etch_conflict *last = &o->conflicts.v[o->conflicts.n - 1];
    uint32_t one = last->cpu, other = last->cpu_with;
    enum etch_order_result result;

    if (one == ETCH_CPU_NONE || one == other || !clock_usable(o, other))
        return ETCH_ORDER_CONFLICT;
    result = settle(o);
    if (result != ETCH_ORDER_CONFLICT)
        return result;
    o->cpu_blamed[one] = false;
    o->cpu_blamed[other] = true;
    result = settle(o);
    if (result == ETCH_ORDER_GOOD) {
        last->cpu = other;
        last->cpu_with = one;
        return result;
    }
    o->cpu_blamed[one] = true;
    o->cpu_blamed[other] = false;
    return result;
}

/* After a contradiction: leaves out what is to blame. A wrong clock taints what is derived from it, so first the graph
 * is made without clocks. If it contradicts itself even so, records are wrong; if the clocks contradict it, they are;
 * if neither shows, what was derived from the clocks must do. */
static enum etch_order_result blame(struct etch_order *o)
{
    size_t before = o->conflicts.n;
    enum etch_order_result result;

    o->blaming = true;
    o->clockless = true;
    result = settle(o);
    o->clockless = false;
    if (result == ETCH_ORDER_GOOD) {
        set_times(o);
        etch_order_push_bounds(o);
        if (!etch_order_bounds_crossed(o))
            result = settle(o);
        else if (etch_order_blame_clock(o) < 0)
            result = ETCH_ORDER_MEMORY;
    }
    o->blaming = false;
    return result == ETCH_ORDER_MEMORY || o->conflicts.n == before ? result : try_the_other(o);
}

/* ---- The displayed sequence ---- */

struct place {
    int64_t at;
    uint32_t rank; /* topological */
    uint32_t event;
};

static int by_place(const void *x, const void *y)
{
    const struct place *a = x;
    const struct place *b = y;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* By the middle between L and U, both of which only grow along every kind of evidence, so the sequence respects them
 * all. */
static bool set_sequence(struct etch_order *o)
{
    struct place *places = malloc(o->n * sizeof(*places) + 1);
    int64_t least = INT64_MAX, most = INT64_MIN;

    if (!places)
        return false;
    for (size_t i = 0; i < o->n; i++) { /* an end that is not known lies behind all that is, of either kind */
        least = o->l[i] != INT64_MIN && o->l[i] < least ? o->l[i] : least;
        least = o->u[i] < least ? o->u[i] : least;
        most = o->u[i] != INT64_MAX && o->u[i] > most ? o->u[i] : most;
        most = o->l[i] > most ? o->l[i] : most;
    }
    for (size_t i = 0; i < o->n; i++) {
        uint32_t e = o->topological[i];
        int64_t l = o->l[e] == INT64_MIN ? least : o->l[e];
        int64_t u = o->u[e] == INT64_MAX ? most : o->u[e];

        ETCH_ASSERT_MSG(o->l[e] <= o->u[e], "event %u", e);
        places[i] = (struct place){.at = l / 2 + u / 2 + (l % 2 + u % 2) / 2, .rank = (uint32_t)i, .event = e};
    }
    qsort(places, o->n, sizeof(*places), by_place);
    for (size_t i = 0; i < o->n; i++)
        o->sequence[i] = places[i].event;
    free(places);
    return true;
}

/* ---- Building ---- */

static bool allocate(struct etch_order *o)
{
    size_t n = o->n + 1;

    o->thread = malloc(n * sizeof(uint32_t));
    o->by_thread = malloc(n * sizeof(uint32_t));
    o->thread_begin = calloc(o->threads + 2, sizeof(uint32_t));
    o->position = malloc(n * sizeof(uint32_t));
    o->sibling = malloc((o->threads + 1) * sizeof(uint32_t));
    o->cpu_blamed = calloc(o->in->n_cpus + 1, sizeof(bool));
    o->lo = malloc(n * sizeof(int64_t));
    o->hi = malloc(n * sizeof(int64_t));
    o->l = malloc(n * sizeof(int64_t));
    o->u = malloc(n * sizeof(int64_t));
    o->l_from = malloc(n * sizeof(uint32_t));
    o->u_from = malloc(n * sizeof(uint32_t));
    o->in_begin = malloc(n * sizeof(uint32_t));
    o->topological = malloc(n * sizeof(uint32_t));
    o->row = malloc(n * sizeof(uint32_t));
    o->sequence = malloc(n * sizeof(uint32_t));
    return o->thread && o->by_thread && o->thread_begin && o->position && o->sibling && o->cpu_blamed && o->lo &&
           o->hi && o->l && o->u && o->l_from && o->u_from && o->in_begin && o->topological && o->row && o->sequence;
}

void etch_order_free(struct etch_order *o)
{
    if (!o)
        return;
    free(o->thread);
    free(o->by_thread);
    free(o->thread_begin);
    free(o->position);
    free(o->sibling);
    free(o->cpu_blamed);
    free(o->lo);
    free(o->hi);
    free(o->l);
    free(o->u);
    free(o->l_from);
    free(o->u_from);
    free(o->in_begin);
    free(o->in_edge);
    free(o->topological);
    free(o->row);
    free(o->sequence);
    drop_lists(o);
    etch_array_free(&o->edges);
    etch_array_free(&o->rows);
    etch_array_free(&o->sections);
    etch_array_free(&o->excluded);
    etch_array_free(&o->conflicts);
    free(o);
}

static int check_links(const struct etch_order_input *input, struct etch_error *err)
{
    for (size_t i = 0; i < input->n_links; i++)
        if (input->links[i].from >= input->n || input->links[i].to >= input->n)
            return etch_error_set(err, "link %zu is to an event that there is not", i);
    return 0;
}

static void log_conflict(const struct etch_conflict *c)
{
    if (c->cpu != ETCH_CPU_NONE)
        etch_log(ETCH_LOG_ORDER, ETCH_LOG_DEBUG, "contradiction: leaves out the clock of CPU %u, beside CPU %u", c->cpu,
                 c->cpu_with);
    else
        etch_log(ETCH_LOG_ORDER, ETCH_LOG_DEBUG, "contradiction: leaves out the records of object 0x%" PRIx64,
                 c->object);
}

static void log_edges(const struct etch_order *o)
{
    size_t counts[ETCH_BY_VALUE + 1] = {0};

    if (!etch_log_is_on(ETCH_LOG_ORDER, ETCH_LOG_DEBUG))
        return;
    for (size_t i = 0; i < o->edges.n; i++)
        counts[o->edges.v[i].kind]++;
    etch_log(ETCH_LOG_ORDER, ETCH_LOG_DEBUG, "%zu events of %u threads, %zu edges, %zu contradictions", o->n,
             o->threads, o->edges.n, o->conflicts.n);
    for (unsigned i = 0; i <= ETCH_BY_VALUE; i++)
        if (counts[i])
            etch_log(ETCH_LOG_ORDER, ETCH_LOG_DEBUG, "%zu edges by %s", counts[i],
                     etch_evidence_name((enum etch_evidence_kind)i));
}

int etch_order_build(struct etch_order **order, const struct etch_order_input *input, struct etch_error *err)
{
    struct etch_order *o = calloc(1, sizeof(*o));
    enum etch_order_result result = ETCH_ORDER_MEMORY;

    *order = NULL;
    if (!o)
        return etch_error_no_memory(err);
    o->in = input;
    o->n = input->n;
    o->threads = input->threads;
    if (input->n >= UINT32_MAX - 1 || input->threads >= UINT32_MAX - 1) {
        etch_order_free(o);
        return etch_error_set(err, "%zu events of %u threads are too many to order", input->n, input->threads);
    }
    if (!allocate(o))
        goto memory;
    if (check_links(input, err) < 0 || set_threads(o, err) < 0 || set_siblings(o, err) < 0) {
        etch_order_free(o);
        return -1;
    }
    while ((result = settle(o)) == ETCH_ORDER_CONFLICT) {
        size_t before = o->conflicts.n;

        if (blame(o) == ETCH_ORDER_MEMORY)
            goto memory;
        /* Each conflict leaves out a clock or an object for good, so this ends. */
        ETCH_ASSERT_MSG(o->conflicts.n > before, "after %zu conflicts", before);
        log_conflict(&o->conflicts.v[o->conflicts.n - 1]);
    }
    drop_lists(o);
    log_edges(o);
    if (result == ETCH_ORDER_GOOD && set_sequence(o)) {
        *order = o;
        return 0;
    }
memory:
    etch_order_free(o);
    return etch_error_set(err, "out of memory while ordering %zu events", input->n);
}
