/* SPDX-License-Identifier: MIT */
/* The merge: passes over the graph, and questions to it; see order.h. */
#include "decoder/order.h"

#include "decoder/order_graph.h"

#include <stdlib.h>
#include <string.h>

#define TURNS 6 /* deriving stops by then at the latest; what is not found stays unordered */

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

#define FAR (INT64_C(1) << 61) /* no TSC gets there in decades; differences of what is nearer do not overflow */

/* A stamp in reference time. Beyond all sense, what is claimed of it is less: a lower bound that lies lower, an upper
 * one that lies higher. */
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
        return etch_error_set(err, "out of memory");
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

/* The edges into each event, side by side. */
static bool index_edges(struct etch_order *o)
{
    uint32_t *edge = realloc(o->in_edge, (o->edges.n + 1) * sizeof(*edge));

    if (!edge)
        return false;
    o->in_edge = edge;
    memset(o->in_begin, 0, (o->n + 1) * sizeof(*o->in_begin));
    for (size_t i = 0; i < o->edges.n; i++)
        o->in_begin[o->edges.v[i].to]++;
    for (size_t i = 0, sum = 0; i <= o->n; i++) {
        sum += o->in_begin[i];
        o->in_begin[i] = (uint32_t)sum;
    }
    for (size_t i = o->edges.n; i-- > 0;)
        o->in_edge[--o->in_begin[o->edges.v[i].to]] = (uint32_t)i;
    return true;
}

/* ---- Passes ---- */

/* Threads run on by turns: each as far as what its next event waits for has been placed; one that must wait is noted at
 * the event it waits for. Returns how many were placed: fewer than n means a cycle among the logical edges. */
static size_t sort_topologically(struct etch_order *o, bool *placed, uint32_t *waiting, uint32_t *next_waiting,
                                 uint32_t *cursor, uint32_t *queue)
{
    size_t n = 0, head = 0, tail = 0;

    memset(placed, 0, o->n * sizeof(*placed));
    memset(waiting, 0xff, o->n * sizeof(*waiting));
    memset(cursor, 0, o->threads * sizeof(*cursor));
    for (uint32_t t = 0; t < o->threads; t++)
        queue[tail++ % o->threads] = t;
    while (head != tail) {
        uint32_t t = queue[head++ % o->threads];

        while (cursor[t] < etch_thread_size(o, t)) {
            uint32_t e = etch_event_at(o, t, cursor[t]);
            uint32_t k = o->in_begin[e];

            while (k < o->in_begin[e + 1] && placed[o->edges.v[o->in_edge[k]].from])
                k++;
            if (k < o->in_begin[e + 1]) {
                uint32_t awaited = o->edges.v[o->in_edge[k]].from;

                next_waiting[t] = waiting[awaited];
                waiting[awaited] = t;
                break;
            }
            placed[e] = true;
            o->topological[n++] = e;
            cursor[t]++;
            for (uint32_t w = waiting[e]; w != UINT32_MAX; w = next_waiting[w])
                queue[tail++ % o->threads] = w; /* a thread waits at one place at most, so the ring has room */
        }
    }
    return n;
}

static void push_bounds(struct etch_order *o)
{
    for (size_t i = 0; i < o->n; i++) {
        uint32_t e = o->topological[i];
        uint32_t thread = o->thread[e];

        o->l[e] = o->lo[e];
        o->l_from[e] = e;
        if (o->position[e] > 0) {
            uint32_t p = etch_event_at(o, thread, o->position[e] - 1);

            if (o->l[p] > o->l[e]) {
                o->l[e] = o->l[p];
                o->l_from[e] = o->l_from[p];
            }
        }
        for (uint32_t k = o->in_begin[e]; k < o->in_begin[e + 1]; k++) {
            uint32_t p = o->edges.v[o->in_edge[k]].from;

            if (o->l[p] > o->l[e]) {
                o->l[e] = o->l[p];
                o->l_from[e] = o->l_from[p];
            }
        }
    }
}

static void lower(struct etch_order *o, uint32_t p, uint32_t e)
{
    if (o->u[e] < o->u[p]) {
        o->u[p] = o->u[e];
        o->u_from[p] = o->u_from[e];
    }
}

static void pull_bounds(struct etch_order *o)
{
    for (size_t i = 0; i < o->n; i++) {
        o->u[i] = o->hi[i];
        o->u_from[i] = (uint32_t)i;
    }
    for (size_t i = o->n; i-- > 0;) {
        uint32_t e = o->topological[i];

        for (uint32_t k = o->in_begin[e]; k < o->in_begin[e + 1]; k++)
            lower(o, o->edges.v[o->in_edge[k]].from, e);
        if (o->position[e] > 0)
            lower(o, etch_event_at(o, o->thread[e], o->position[e] - 1), e);
    }
}

/* Joins what the source of an edge has behind it into `row`. True if that was news. */
static bool join(const struct etch_order *o, uint32_t *row, uint32_t from)
{
    const uint32_t *theirs = &o->rows.v[(size_t)o->row[from] * o->threads];
    uint32_t thread = o->thread[from];
    uint32_t changed = 0;

    for (uint32_t t = 0; t < o->threads; t++) {
        changed |= theirs[t] > row[t];
        row[t] = theirs[t] > row[t] ? theirs[t] : row[t];
    }
    if (o->position[from] + 1 > row[thread]) {
        row[thread] = o->position[from] + 1;
        changed = 1;
    }
    return changed != 0;
}

/* Vector clocks in topological order. An event without news shares that of the event before it. */
static bool set_rows(struct etch_order *o, uint32_t *scratch)
{
    o->rows.n = 0;
    if (o->threads == 0)
        return true;
    if (!etch_array_reserve(&o->rows, o->threads))
        return false;
    memset(o->rows.v, 0, o->threads * sizeof(uint32_t)); /* row 0: nothing known */
    o->rows.n = o->threads;
    for (size_t i = 0; i < o->n; i++) {
        uint32_t e = o->topological[i];
        uint32_t at = o->position[e];
        bool news = false;

        o->row[e] = at > 0 ? o->row[etch_event_at(o, o->thread[e], at - 1)] : 0;
        if (o->in_begin[e] == o->in_begin[e + 1])
            continue;
        memcpy(scratch, &o->rows.v[(size_t)o->row[e] * o->threads], o->threads * sizeof(uint32_t));
        for (uint32_t k = o->in_begin[e]; k < o->in_begin[e + 1]; k++)
            news |= join(o, scratch, o->edges.v[o->in_edge[k]].from);
        if (!news)
            continue;
        if (!etch_array_reserve(&o->rows, o->rows.n + o->threads))
            return false;
        memcpy(&o->rows.v[o->rows.n], scratch, o->threads * sizeof(uint32_t));
        o->row[e] = (uint32_t)(o->rows.n / o->threads);
        o->rows.n += o->threads;
    }
    return true;
}

static bool bounds_crossed(const struct etch_order *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->l[i] > o->hi[i])
            return true;
    return false;
}

enum pass { PASS_GOOD, PASS_CONFLICT, PASS_MEMORY };

/* One turn: everything that follows from the edges so far. */
static enum pass pass(struct etch_order *o)
{
    bool *placed = malloc(o->n * sizeof(*placed) + 1);
    uint32_t *scratch = malloc((o->n + 4 * (size_t)o->threads + 4) * sizeof(*scratch));
    enum pass result = PASS_MEMORY;

    if (!placed || !scratch || !index_edges(o))
        goto out;
    result = PASS_CONFLICT;
    if (sort_topologically(o, placed, scratch, scratch + o->n, scratch + o->n + o->threads,
                           scratch + o->n + 2 * (size_t)o->threads) < o->n) {
        if (o->blaming && etch_order_blame_records(o, placed) < 0)
            result = PASS_MEMORY;
        goto out;
    }
    push_bounds(o);
    if (bounds_crossed(o)) {
        if (o->blaming && etch_order_blame_clock(o) < 0)
            result = PASS_MEMORY;
        goto out;
    }
    pull_bounds(o);
    result = set_rows(o, scratch) ? PASS_GOOD : PASS_MEMORY;
out:
    free(placed);
    free(scratch);
    return result;
}

static void drop_lists(struct etch_order *o)
{
    free(o->posts.v);
    free(o->located.v);
    o->posts.v = o->located.v = NULL;
}

/* Turns until nothing new follows. */
static enum pass settle(struct etch_order *o)
{
    bool enough = false;

    o->edges.n = 0;
    o->sections.n = 0;
    drop_lists(o);
    set_times(o);
    if (etch_order_sync_collect(o) < 0)
        return PASS_MEMORY;
    for (o->turns = 1;; o->turns++) {
        enum pass result = pass(o);
        int64_t found, values;

        if (result != PASS_GOOD || o->turns == TURNS || enough)
            return result;
        found = etch_order_sync_derive(o);
        values = etch_order_values_derive(o);
        if (values == ETCH_DERIVE_CONFLICT)
            return PASS_CONFLICT;
        if (found < 0 || values < 0)
            return PASS_MEMORY;
        if (found + values == 0)
            return PASS_GOOD;
        enough =
            (size_t)(found + values) < o->n / 1000; /* a large run: what a further turn would add is not worth it */
    }
}

/* The clock that was blamed stands in a contradiction with one other. If leaving it out does not settle everything, and
 * leaving out the other one instead does, it was the other one. */
static enum pass try_the_other(struct etch_order *o)
{
    struct etch_conflict *last = &o->conflicts.v[o->conflicts.n - 1];
    uint32_t one = last->cpu, other = last->cpu_with;
    enum pass result;

    if (one == ETCH_CPU_NONE || one == other || !clock_usable(o, other))
        return PASS_CONFLICT;
    result = settle(o);
    if (result != PASS_CONFLICT)
        return result;
    o->cpu_blamed[one] = false;
    o->cpu_blamed[other] = true;
    result = settle(o);
    if (result == PASS_GOOD) {
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
static enum pass blame(struct etch_order *o)
{
    size_t before = o->conflicts.n;
    enum pass result;

    o->blaming = true;
    o->clockless = true;
    result = settle(o);
    o->clockless = false;
    if (result == PASS_GOOD) {
        set_times(o);
        push_bounds(o);
        if (!bounds_crossed(o))
            result = settle(o);
        else if (etch_order_blame_clock(o) < 0)
            result = PASS_MEMORY;
    }
    o->blaming = false;
    return result == PASS_MEMORY || o->conflicts.n == before ? result : try_the_other(o);
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

int etch_order_build(struct etch_order **order, const struct etch_order_input *input, struct etch_error *err)
{
    struct etch_order *o = calloc(1, sizeof(*o));
    enum pass result = PASS_MEMORY;

    *order = NULL;
    if (!o)
        return etch_error_set(err, "out of memory");
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
    while ((result = settle(o)) == PASS_CONFLICT) /* each leaves out a clock or an object for good, so this ends */
        if (blame(o) == PASS_MEMORY)
            goto memory;
    drop_lists(o);
    if (result == PASS_GOOD && set_sequence(o)) {
        *order = o;
        return 0;
    }
memory:
    etch_order_free(o);
    return etch_error_set(err, "out of memory while ordering %zu events", input->n);
}

/* ---- Questions ---- */

enum etch_relation etch_order_ask(const struct etch_order *o, size_t a, size_t b)
{
    if (a == b)
        return ETCH_SAME;
    if (etch_order_before(o, (uint32_t)a, (uint32_t)b))
        return ETCH_BEFORE;
    return etch_order_before(o, (uint32_t)b, (uint32_t)a) ? ETCH_AFTER : ETCH_UNORDERED;
}

struct chain {
    struct etch_evidence *links;
    size_t n, max;
};

static void add_link(struct chain *chain, enum etch_evidence_kind kind, uint32_t from, uint32_t to)
{
    if (chain->n < chain->max)
        chain->links[chain->n] = (struct etch_evidence){.kind = kind, .from = from, .to = to};
    chain->n++;
}

/* The first event of b's thread that already has `a` behind it, b at the latest. */
static uint32_t earliest_after(const struct etch_order *o, uint32_t a, uint32_t b)
{
    uint32_t thread = o->thread[b];
    uint32_t lo = 0, hi = o->position[b];

    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;

        if (etch_order_logical(o, a, etch_event_at(o, thread, middle)))
            hi = middle;
        else
            lo = middle + 1;
    }
    return etch_event_at(o, thread, lo);
}

/* Links from a to b by logical edges, last one first. */
static void walk_back(const struct etch_order *o, uint32_t a, uint32_t b, struct chain *chain)
{
    while (a != b) {
        uint32_t came = b;

        if (o->thread[a] == o->thread[b]) {
            add_link(chain, ETCH_BY_PROGRAM, a, b);
            return;
        }
        came = earliest_after(o, a, b);
        if (came != b)
            add_link(chain, ETCH_BY_PROGRAM, came, b);
        for (uint32_t k = o->in_begin[came]; k < o->in_begin[came + 1]; k++) {
            const struct edge *edge = &o->edges.v[o->in_edge[k]];

            if (edge->from != a && !etch_order_logical(o, a, edge->from))
                continue;
            add_link(chain, edge->kind, edge->from, came);
            b = edge->from;
            break;
        }
        if (b != a && o->thread[b] == o->thread[came])
            return; /* cannot be: the vector clock came by one of these edges */
    }
}

size_t etch_order_why(const struct etch_order *o, size_t x, size_t y, struct etch_evidence *links, size_t max)
{
    struct chain chain = {.links = links, .max = max};
    enum etch_relation relation = etch_order_ask(o, x, y);
    uint32_t a = (uint32_t)(relation == ETCH_AFTER ? y : x);
    uint32_t b = (uint32_t)(relation == ETCH_AFTER ? x : y);

    if (relation != ETCH_BEFORE && relation != ETCH_AFTER)
        return 0;
    if (etch_order_logical(o, a, b)) {
        walk_back(o, a, b, &chain);
    } else if (o->hi[a] < o->lo[b]) {
        add_link(&chain, ETCH_BY_CLOCK, a, b);
    } else {
        walk_back(o, o->l_from[b], b, &chain);
        add_link(&chain, ETCH_BY_CLOCK, o->u_from[a], o->l_from[b]);
        walk_back(o, a, o->u_from[a], &chain);
    }
    for (size_t i = 0, n = chain.n < max ? chain.n : max; i < n / 2; i++) {
        struct etch_evidence swap = links[i];

        links[i] = links[n - 1 - i];
        links[n - 1 - i] = swap;
    }
    return chain.n;
}

const struct etch_conflict *etch_order_conflicts(const struct etch_order *o, size_t *n)
{
    *n = o->conflicts.n;
    return o->conflicts.v;
}

const uint32_t *etch_order_sequence(const struct etch_order *o)
{
    return o->sequence;
}

void etch_order_measure(const struct etch_order *o, struct etch_order_size *size)
{
    size->events = o->n;
    size->edges = o->edges.n;
    size->rows = o->rows.n / (o->threads ? o->threads : 1);
    size->turns = o->turns;
    size->bytes = o->n * (4 * sizeof(int64_t) + 9 * sizeof(uint32_t)) +
                  o->edges.capacity * (sizeof(struct edge) + sizeof(uint32_t)) + o->rows.capacity * sizeof(uint32_t) +
                  o->sections.capacity * sizeof(struct section);
}
