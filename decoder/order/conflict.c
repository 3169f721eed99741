/* SPDX-License-Identifier: MIT */
/* Evidence that contradicts itself: the smallest cycle, and what to leave out. See order.h. */
#include "decoder/order/graph.h"

#include <stdlib.h>
#include <string.h>

#define HOPS 8 /* most logical links of a cycle that is searched link by link */

/* ---- Cycles without a clock: records are lost or wrong ---- */

/* A breadth-first search from `start` along edges backwards, among the events that could not be placed. Finds the
 * shortest way back to `start`. */
struct search {
    uint32_t *via; /* the event through which an event was reached, towards `start` */
    uint8_t *kind;
    uint32_t *queue;
};

static bool search_new(struct search *s, size_t n)
{
    s->via = malloc((n + 1) * sizeof(*s->via));
    s->kind = malloc(n + 1);
    s->queue = malloc((n + 1) * sizeof(*s->queue));
    return s->via && s->kind && s->queue;
}

static void search_free(struct search *s)
{
    free(s->via);
    free(s->kind);
    free(s->queue);
}

/* Writes the cycle through `start`, its links in order; 0 where there is none. */
static size_t cycle_through(const struct etch_order *o, const bool *placed, uint32_t start, struct search *s,
                            struct etch_evidence *cycle, size_t max)
{
    size_t head = 0, tail = 0;

    memset(s->via, 0xff, o->n * sizeof(*s->via));
    s->queue[tail++] = start;
    while (head < tail) {
        uint32_t e = s->queue[head++];
        uint32_t count = o->in_begin[e + 1] - o->in_begin[e];

        for (uint32_t k = 0; k <= count; k++) { /* the edges, then the event before in the thread */
            uint32_t from;
            uint8_t kind = ETCH_BY_PROGRAM;

            if (k < count) {
                from = o->edges.v[o->in_edge[o->in_begin[e] + k]].from;
                kind = o->edges.v[o->in_edge[o->in_begin[e] + k]].kind;
            } else if (o->position[e] > 0) {
                from = etch_event_at(o, o->thread[e], o->position[e] - 1);
            } else {
                continue;
            }
            if (from == start) {
                size_t n = 0;

                for (uint32_t at = e, last = start; n < max; at = s->via[at]) {
                    cycle[n++] =
                        (struct etch_evidence){.kind = last == start ? kind : s->kind[last], .from = last, .to = at};
                    if (at == start)
                        break;
                    last = at;
                }
                return n;
            }
            if (placed[from] || s->via[from] != ETCH_NO_EVENT)
                continue;
            s->via[from] = e;
            s->kind[from] = kind;
            s->queue[tail++] = from;
        }
    }
    return 0;
}

/* The object of an event in a cycle; for a condition wait, the mutex. */
static uint64_t object_of(const struct etch_event *e)
{
    bool wait = e->op == ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN || e->op == ETCH__SYNC_OP__SYNC_COND_WAIT_END;

    return e->kind == ETCH_EVENT_SYNC && wait ? e->other : e->object;
}

/* The link of a cycle whose records are left out. Links by value go first, because values need more assumptions than
 * locks: every access seen, every value right. NULL where there is none. */
static const struct etch_evidence *link_to_blame(const struct etch_evidence *cycle, size_t n)
{
    const struct etch_evidence *worst = NULL;

    for (size_t i = 0; i < n; i++)
        if (cycle[i].kind != ETCH_BY_PROGRAM && cycle[i].kind != ETCH_BY_CPU &&
            (!worst || (cycle[i].kind == ETCH_BY_VALUE && worst->kind != ETCH_BY_VALUE)))
            worst = &cycle[i];
    return worst;
}

/* Leaves out all edges at once; on the next call all clocks; on the call after, the caller's links. Then nothing is
 * left that could contradict. */
static void distrust_more(struct etch_order *o)
{
    bool clocks = false;

    for (uint32_t c = 0; o->distrust && c < o->in->n_cpus; c++) {
        clocks |= !o->cpu_blamed[c];
        o->cpu_blamed[c] = true;
    }
    o->unlinked |= o->distrust && !clocks;
    o->distrust = true;
}

/* Leaves out the object of one link. If no link can be blamed, or its object is left out already, distrusts more at
 * once: otherwise the passes would not end. */
static bool leave_out(struct etch_order *o, struct etch_conflict *conflict)
{
    const struct etch_evidence *link = link_to_blame(conflict->cycle, conflict->n);

    if (link)
        conflict->object = object_of(&o->in->events[link->to]);
    if (!link || etch_order_excluded(o, conflict->object))
        distrust_more(o);
    return etch_array_push(&o->excluded, conflict->object);
}

int etch_order_blame_records(struct etch_order *o, const bool *placed)
{
    struct etch_conflict conflict = {.cpu = ETCH_CPU_NONE, .cpu_with = ETCH_CPU_NONE};
    struct search s = {0};
    size_t tried = 0;
    int result = -1;

    if (!search_new(&s, o->n))
        goto out;
    for (size_t i = 0; i < o->n; i++) {
        struct etch_evidence cycle[ETCH_CYCLE_MAX];
        size_t n;

        conflict.events += !placed[i];
        if (placed[i] || o->in_begin[i] == o->in_begin[i + 1] || tried >= 256)
            continue; /* every cycle goes through an event with an edge from another thread */
        tried++;
        n = cycle_through(o, placed, (uint32_t)i, &s, cycle, ETCH_CYCLE_MAX);
        if (n > 0 && (conflict.n == 0 || n < conflict.n)) {
            conflict.n = n;
            memcpy(conflict.cycle, cycle, n * sizeof(*cycle));
        }
    }
    if (leave_out(o, &conflict) && etch_array_push(&o->conflicts, conflict))
        result = 0;
out:
    search_free(&s);
    return result;
}

/* ---- Cycles with a clock ---- */

/* The greatest lower bound that reaches an event in at most `hops` links, and by which link. */
struct level {
    int64_t *l;
    uint32_t *via;
    uint8_t *kind;
};

static void level_free(struct level *level)
{
    free(level->l);
    free(level->via);
    free(level->kind);
}

static bool level_new(struct level *level, size_t n)
{
    level->l = malloc((n + 1) * sizeof(*level->l));
    level->via = malloc((n + 1) * sizeof(*level->via));
    level->kind = malloc(n + 1);
    return level->l && level->via && level->kind;
}

static void improve(struct level *next, uint32_t e, int64_t l, uint32_t via, uint8_t kind)
{
    if (l > next->l[e]) {
        next->l[e] = l;
        next->via[e] = via;
        next->kind[e] = kind;
    }
}

/* One link further: an edge, or any distance along a thread. */
static void level_step(const struct etch_order *o, const struct level *now, struct level *next)
{
    for (size_t i = 0; i < o->n; i++) {
        next->l[i] = now->l[i];
        next->via[i] = ETCH_NO_EVENT; /* nothing gained on this level */
    }
    for (size_t i = 0; i < o->edges.n; i++) {
        const struct edge *edge = &o->edges.v[i];

        improve(next, edge->to, now->l[edge->from], edge->from, edge->kind);
    }
    for (uint32_t t = 0; t < o->threads; t++) {
        uint32_t best = ETCH_NO_EVENT;

        for (uint32_t k = 0; k < etch_thread_size(o, t); k++) {
            uint32_t e = etch_event_at(o, t, k);

            if (best != ETCH_NO_EVENT)
                improve(next, e, now->l[best], best, ETCH_BY_PROGRAM);
            if (best == ETCH_NO_EVENT || now->l[e] > now->l[best])
                best = e;
        }
    }
}

/* The event that the clocks contradict most, by the bounds of one level; ETCH_NO_EVENT where none. */
static uint32_t most_crossed(const struct etch_order *o, const int64_t *l)
{
    uint32_t worst = ETCH_NO_EVENT;
    int64_t excess = 0;

    for (size_t i = 0; i < o->n; i++)
        if (l[i] > o->hi[i] && l[i] - o->hi[i] > excess) {
            excess = l[i] - o->hi[i];
            worst = (uint32_t)i;
        }
    return worst;
}

/* Reads the links off the levels, from `end` back to where its bound came from, and closes them by the clock. */
static void read_cycle(const struct level *levels, size_t top, uint32_t end, struct etch_conflict *conflict)
{
    uint32_t at = end;
    size_t n = 0;

    for (size_t level = top; level > 0; level--) {
        if (levels[level].via[at] == ETCH_NO_EVENT)
            continue;
        conflict->cycle[n++] =
            (struct etch_evidence){.kind = levels[level].kind[at], .from = levels[level].via[at], .to = at};
        at = levels[level].via[at];
    }
    for (size_t i = 0; i < n / 2; i++) {
        struct etch_evidence swap = conflict->cycle[i];

        conflict->cycle[i] = conflict->cycle[n - 1 - i];
        conflict->cycle[n - 1 - i] = swap;
    }
    conflict->cycle[n++] = (struct etch_evidence){.kind = ETCH_BY_CLOCK, .from = end, .to = at};
    conflict->n = n;
}

/* The cycle with the fewest links. */
static int find_cycle(const struct etch_order *o, struct etch_conflict *conflict)
{
    struct level levels[HOPS + 1] = {{0}};
    size_t top = 0;
    int result = -1;

    for (; top <= HOPS; top++) {
        uint32_t worst;

        if (!level_new(&levels[top], o->n))
            goto out;
        if (top == 0)
            memcpy(levels[0].l, o->lo, o->n * sizeof(*o->lo));
        else
            level_step(o, &levels[top - 1], &levels[top]);
        worst = most_crossed(o, levels[top].l);
        if (worst != ETCH_NO_EVENT) {
            read_cycle(levels, top, worst, conflict);
            break;
        }
    }
    result = 0;
out:
    for (size_t i = 0; i <= HOPS; i++)
        level_free(&levels[i]);
    return result;
}

/* The contradictions between pairs of CPUs, as matrices of n_cpus squared. */
struct tally {
    uint32_t n;
    uint64_t *crossed; /* [a * n + b]: events where a lower bound by a's clock passed an upper bound by b's */
    int64_t *slack;    /* [a * n + b]: the least time, by the clocks, that any edge from a to b took */
    int64_t *scratch;  /* n */
};

static void tally_slack(const struct etch_order *o, struct tally *t, uint32_t from, uint32_t to)
{
    uint32_t a = o->in->events[from].lo.cpu, b = o->in->events[to].hi.cpu;
    size_t at;

    if (o->lo[from] == INT64_MIN || o->hi[to] == INT64_MAX || a >= t->n || b >= t->n)
        return;
    at = (size_t)a * t->n + b;
    if (o->hi[to] - o->lo[from] < t->slack[at])
        t->slack[at] = o->hi[to] - o->lo[from];
}

static void tally_crossed(const struct etch_order *o, struct tally *t)
{
    for (size_t i = 0; i < o->n; i++) {
        uint32_t a, b;

        if (o->l[i] <= o->hi[i])
            continue;
        a = o->in->events[o->l_from[i]].lo.cpu;
        b = o->in->events[i].hi.cpu;
        if (a < t->n && b < t->n) /* else the stamp is by the clock of any CPU, and no CPU can be named */
            t->crossed[(size_t)a * t->n + b]++;
    }
    for (size_t i = 0; i < o->edges.n; i++)
        tally_slack(o, t, o->edges.v[i].from, o->edges.v[i].to);
    for (size_t i = 0; i < o->n; i++) /* a thread that moved between two stamps */
        tally_slack(o, t, (uint32_t)i, (uint32_t)i);
}

static int ascending(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x;
    int64_t b = *(const int64_t *)y;

    return a < b ? -1 : a > b;
}

/* The deviation of a clock from the others: the difference between the least time there and the least time back, which
 * is small for two good clocks. The median over the others is taken: a good clock differs from the one bad clock only,
 * a bad clock differs from all. */
static int64_t deviation(const struct tally *t, uint32_t cpu)
{
    size_t n = 0;

    for (uint32_t other = 0; other < t->n; other++) {
        int64_t there = t->slack[(size_t)cpu * t->n + other];
        int64_t back = t->slack[(size_t)other * t->n + cpu];

        if (other != cpu && there != INT64_MAX && back != INT64_MAX)
            t->scratch[n++] = there > back ? there - back : back - there;
    }
    if (n == 0)
        return 0;
    qsort(t->scratch, n, sizeof(*t->scratch), ascending);
    return t->scratch[(n - 1) / 2];
}

struct suspect {
    uint64_t partners, events;
    int64_t deviation;
    uint32_t cpu;
    bool reference;
};

/* The worse clock contradicts more other clocks; then deviates more. The reference is blamed last. */
static bool worse(const struct suspect *a, const struct suspect *b)
{
    if (a->partners != b->partners)
        return a->partners > b->partners;
    if (a->deviation != b->deviation)
        return a->deviation > b->deviation;
    if (a->events != b->events)
        return a->events > b->events;
    if (a->reference != b->reference)
        return b->reference;
    return a->cpu > b->cpu;
}

static struct suspect suspect_of(const struct etch_order *o, const struct tally *t, uint32_t cpu)
{
    struct suspect s = {.cpu = cpu, .reference = cpu == o->in->reference, .deviation = deviation(t, cpu)};

    for (uint32_t other = 0; other < t->n; other++) {
        uint64_t events = t->crossed[(size_t)cpu * t->n + other];

        if (other != cpu)
            events += t->crossed[(size_t)other * t->n + cpu];
        else if (events)
            s.partners += t->n; /* the clock contradicts itself: it needs no partner */
        s.partners += events > 0;
        s.events += events;
    }
    return s;
}

static bool clock_in_use(const struct etch_order *o, uint32_t cpu)
{
    return o->in->cpus[cpu].known && !o->cpu_blamed[cpu];
}

/* `crossed`: bounds have crossed, and their clocks are the suspects. Else the deviations of the clocks decide. */
static struct suspect find_suspect(const struct etch_order *o, const struct tally *t, bool crossed)
{
    struct suspect worst = {.cpu = ETCH_CPU_NONE};

    for (uint32_t cpu = 0; cpu < t->n; cpu++) {
        struct suspect s = suspect_of(o, t, cpu);

        if ((s.events || !crossed) && clock_in_use(o, cpu) && (worst.cpu == ETCH_CPU_NONE || worse(&s, &worst)))
            worst = s;
    }
    return worst;
}

static void describe(const struct etch_order *o, struct etch_conflict *conflict)
{
    const struct etch_evidence *by_clock = &conflict->cycle[conflict->n - 1];
    uint32_t a = o->in->events[by_clock->to].lo.cpu, b = o->in->events[by_clock->from].hi.cpu;

    conflict->excess = o->lo[by_clock->to] - o->hi[by_clock->from];
    conflict->cpu_with = a == conflict->cpu ? b : a;
}

int etch_order_blame_clock(struct etch_order *o)
{
    size_t n = o->in->n_cpus;
    struct tally t = {.n = (uint32_t)n,
                      .crossed = calloc(n * n + 1, sizeof(uint64_t)),
                      .slack = calloc(n * n + 1, sizeof(int64_t)),
                      .scratch = calloc(n + 1, sizeof(int64_t))};
    struct etch_conflict conflict = {.cpu = ETCH_CPU_NONE, .cpu_with = ETCH_CPU_NONE};
    int result = -1;

    if (!t.crossed || !t.slack || !t.scratch || find_cycle(o, &conflict) < 0)
        goto out;
    for (size_t i = 0; i < n * n; i++)
        t.slack[i] = INT64_MAX;
    tally_crossed(o, &t);
    for (size_t i = 0; i < o->n; i++)
        conflict.events += o->l[i] > o->hi[i];
    conflict.cpu = find_suspect(o, &t, conflict.events > 0).cpu;
    if (conflict.n)
        describe(o, &conflict);
    if (conflict.cpu != ETCH_CPU_NONE)
        o->cpu_blamed[conflict.cpu] = true;
    else
        distrust_more(o); /* no clock is left to blame */
    result = etch_array_push(&o->conflicts, conflict) ? 0 : -1;
out:
    free(t.crossed);
    free(t.slack);
    free(t.scratch);
    return result;
}
