/* SPDX-License-Identifier: MIT */
/* One thread, recorded by several sources; see timeline_tie.h. */
#include "decoder/order/timeline_tie.h"

/* The time at which an event's stamp was taken; for a mark, the time of the mark. */
struct span {
    struct etch_bound lo, hi;
};

static struct span span_of(const struct etch_timeline *t, size_t event)
{
    const struct etch_event_stamp *s = &t->stamps.v[event];
    const struct etch_event *e = &t->events.v[event];

    if (s->stamping == ETCH_STAMPED_NOT)
        return (struct span){e->lo, e->hi};
    return (struct span){{.tsc = s->tsc > s->error ? s->tsc - s->error : 0, .cpu = s->cpu},
                         {.tsc = s->tsc > UINT64_MAX - s->error ? UINT64_MAX : s->tsc + s->error, .cpu = s->cpu}};
}

static const struct etch_cpu_range *range_of(const struct etch_timeline_clocks *c, uint32_t cpu)
{
    const struct etch_cpu_range *range = cpu == ETCH_CPU_ANY ? &c->any : cpu < c->n_cpus ? &c->cpus[cpu] : NULL;

    return range && range->known ? range : NULL;
}

/* Is x certainly earlier than y, by the clock of one CPU or by two clocks with a known skew? */
static bool earlier(const struct etch_timeline *t, struct etch_bound x, struct etch_bound y)
{
    const struct etch_timeline_clocks *c = &t->clocks;
    const struct etch_cpu_range *from = range_of(c, x.cpu), *to = range_of(c, y.cpu);

    if (x.cpu == y.cpu && x.cpu < ETCH_CPU_ANY)
        return (x.cpu >= c->n_cpus || c->cpus[x.cpu].local) && x.tsc < y.tsc;
    if (!from || !to)
        return false;
    return (int64_t)(y.tsc / 2) - (int64_t)(x.tsc / 2) > (to->hi - from->lo) / 2 + 1; /* halves: nothing overflows */
}

/* y is behind x: y happened after the stamp of x, and x happened before the stamp of y. The later lower bound and the
 * earlier upper bound count, if the bounds can be compared. */
static void bound_each_other(struct etch_timeline *t, size_t x, size_t y)
{
    struct span from = span_of(t, x), to = span_of(t, y);
    struct etch_event *first = &t->events.v[x], *second = &t->events.v[y];

    if (t->stamps.v[x].stamping != ETCH_STAMPED_NOT && t->stamps.v[y].stamping != ETCH_STAMPED_BEFORE &&
        (second->lo.cpu == ETCH_CPU_NONE || earlier(t, second->lo, from.lo)))
        second->lo = from.lo;
    if (t->stamps.v[y].stamping != ETCH_STAMPED_NOT && t->stamps.v[x].stamping != ETCH_STAMPED_AFTER &&
        (!t->stamps.v[x].buffered || t->stamps.v[y].drained) &&
        (first->hi.cpu == ETCH_CPU_NONE || earlier(t, to.hi, first->hi)))
        first->hi = to.hi;
}

static bool tie(struct etch_timeline *t, size_t x, size_t y)
{
    struct etch_order_link link = {.from = (uint32_t)x, .to = (uint32_t)y};

    bound_each_other(t, x, y);
    return etch_array_push(&t->links, link);
}

#define AHEAD 64 /* events of a that may stand between two of b and tell nothing */

/* How many of a are before b's event for certain, of which `known` are so already. */
static size_t count_before(const struct etch_timeline *t, struct etch_sequence a, size_t known, struct etch_bound at)
{
    for (size_t i = known; i < a.n && i < known + AHEAD; i++)
        if (earlier(t, span_of(t, a.first + i).hi, at))
            known = i + 1;
    return known;
}

/* Ties each event of b to the last one of a that is certainly before it, and to the first one that is certainly behind:
 * program order within a and b carries it on. Goes forward only: what is before one event of b is before all that
 * follow. */
bool etch_timeline_tie(struct etch_timeline *t, struct etch_sequence a, struct etch_sequence b)
{
    size_t before = 0, behind = 0, tied = a.n;

    for (size_t i = 0; i < b.n; i++) {
        struct span at = span_of(t, b.first + i);
        size_t more = count_before(t, a, before, at.lo), last = i;

        if (more > before && !tie(t, a.first + more - 1, b.first + i))
            return false;
        before = more;
        while (behind < a.n && !earlier(t, at.hi, span_of(t, a.first + behind).lo))
            behind++;
        if (behind == a.n || behind == tied)
            continue; /* an event of b further on is nearer to it */
        while (last + 1 < b.n && earlier(t, span_of(t, b.first + last + 1).hi, span_of(t, a.first + behind).lo))
            last++;
        if (!tie(t, b.first + last, a.first + behind))
            return false;
        tied = behind;
    }
    return true;
}
