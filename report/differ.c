/* SPDX-License-Identifier: MIT */
/* How a slow call differs from typical calls: by its waits, by paths that they do not have, by paths that ran more. */
#include "report/slowest.h"

#include "report/quantity.h"

#include <string.h>

#define LEAST_SHARE 0.02 /* of the difference: less is not shown */

static const struct etch_call_part *find_part(const struct etch_call_detail *detail, uint64_t key)
{
    for (size_t i = 0; i < detail->parts.n; i++)
        if (detail->parts.v[i].key == key)
            return &detail->parts.v[i];
    return NULL;
}

/* The instructions of a part itself. */
static double self_of(const struct etch_call_detail *detail, uint32_t part)
{
    double self = (double)detail->parts.v[part].instructions;

    for (uint32_t i = 1; i < detail->parts.n; i++)
        if (detail->parts.v[i].parent == part && i != part)
            self -= (double)detail->parts.v[i].instructions;
    return self;
}

/* The mean over the typical calls; `seen`: how many of them have the path. */
static double typical_self(const struct etch_slowest *s, uint64_t key, size_t *seen)
{
    double sum = 0;

    *seen = 0;
    for (size_t i = 0; i < s->typical.n; i++) {
        const struct etch_call_detail *t = &s->typical.v[i];
        const struct etch_call_part *part = find_part(t, key);

        if (part) {
            sum += self_of(t, (uint32_t)(part - t->parts.v));
            ++*seen;
        }
    }
    return s->typical.n ? sum / (double)s->typical.n : 0;
}

static double typical_wait(const struct etch_slowest *s, uint32_t wait)
{
    double sum = 0;

    for (size_t i = 0; i < s->typical.n; i++)
        for (size_t k = 0; k < s->typical.v[i].waits.n; k++)
            if (s->typical.v[i].waits.v[k].wait == wait)
                sum += (double)s->typical.v[i].waits.v[k].ticks;
    return s->typical.n ? sum / (double)s->typical.n : 0;
}

static bool add(struct etch_slow_call *slow, enum etch_difference_kind kind, uint32_t part, uint32_t wait, double more,
                double typical)
{
    struct etch_difference d = {.kind = kind, .part = part, .wait = wait, .more = more, .typical = typical};

    return more <= 0 || etch_array_push(&slow->differences, d);
}

static bool add_waits(const struct etch_slowest *s, struct etch_slow_call *slow)
{
    for (size_t i = 0; i < slow->detail.waits.n; i++) {
        const struct etch_call_wait *w = &slow->detail.waits.v[i];
        double typical = typical_wait(s, w->wait);

        if (!add(slow, ETCH_DIFFERENCE_WAIT, 0, w->wait, (double)w->ticks - typical, typical))
            return false;
    }
    return true;
}

/* A path that no typical call has counts as one, with everything below it. */
static bool add_paths(const struct etch_slowest *s, struct etch_slow_call *slow)
{
    const struct etch_call_detail *d = &slow->detail;
    bool *is_new = calloc(d->parts.n + 1, 1);
    bool ok = is_new != NULL;

    for (uint32_t i = 0; i < d->parts.n && ok; i++) {
        size_t seen;
        double typical = typical_self(s, d->parts.v[i].key, &seen), self = self_of(d, i);

        is_new[i] = seen == 0 || (i && is_new[d->parts.v[i].parent]);
        if (!is_new[i])
            ok = add(slow, ETCH_DIFFERENCE_RAN_MORE, i, 0, self - typical, typical);
        else if (i == 0 || !is_new[d->parts.v[i].parent])
            ok = add(slow, ETCH_DIFFERENCE_PATH, i, 0, (double)d->parts.v[i].instructions, 0);
    }
    free(is_new);
    return ok;
}

static int by_share(const void *a, const void *b)
{
    const struct etch_difference *x = a, *y = b;

    return x->share < y->share ? 1 : x->share > y->share ? -1 : (int)x->kind - (int)y->kind;
}

/* In time: the extra time less the waits is shared by instructions. In instructions: waits and instructions are shares
 * of their own sums, because they have no common unit. */
static void share(const struct etch_slowest *s, struct etch_slow_call *slow)
{
    bool ticks = s->profile->unit == ETCH_UNIT_TICKS;
    double all = etch_span_middle(slow->more), waits = 0, ran = 0;
    size_t n = 0;

    for (size_t i = 0; i < slow->differences.n; i++)
        *(slow->differences.v[i].kind == ETCH_DIFFERENCE_WAIT ? &waits : &ran) += slow->differences.v[i].more;
    all = all > waits ? all : waits;
    for (size_t i = 0; i < slow->differences.n; i++) {
        struct etch_difference d = slow->differences.v[i];

        if (d.kind == ETCH_DIFFERENCE_WAIT)
            d.share = d.more / (ticks ? all : waits);
        else
            d.share = d.more / ran * (ticks ? (all - waits) / all : 1);
        if (d.share >= LEAST_SHARE)
            slow->differences.v[n++] = d;
    }
    slow->differences.n = n;
    qsort(slow->differences.v, n, sizeof(*slow->differences.v), by_share);
}

static struct etch_span middle_of(const struct etch_slowest *s)
{
    struct etch_span span = {UINT64_MAX, 0};

    for (size_t i = 0; i < s->typical.n; i++) {
        const struct etch_span *cost = &s->typical.v[i].call.cost;

        span.lo = cost->lo < span.lo ? cost->lo : span.lo;
        span.hi = cost->hi > span.hi ? cost->hi : span.hi;
    }
    return s->typical.n ? span : (struct etch_span){0, 0};
}

static int slower_first(const void *a, const void *b)
{
    const struct etch_slow_call *x = a, *y = b;
    double dx = x->by_wait ? (double)x->detail.call.wait : etch_span_middle(x->detail.call.cost);
    double dy = y->by_wait ? (double)y->detail.call.wait : etch_span_middle(y->detail.call.cost);

    if (x->by_wait != y->by_wait)
        return x->by_wait ? 1 : -1;
    return dx < dy ? 1 : dx > dy ? -1 : 0;
}

/* Drops calls that may be no slower than typical ones. */
static void drop_uncertain(struct etch_slowest *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->slow.n; i++) {
        struct etch_slow_call *slow = &s->slow.v[i];

        if (slow->more.lo > 0 || slow->by_wait) {
            s->slow.v[n++] = *slow;
            continue;
        }
        s->uncertain += slow->more.hi > 0;
        etch_array_free(&slow->detail.parts);
        etch_array_free(&slow->detail.waits);
    }
    s->slow.n = n;
}

int etch_slowest_explain(struct etch_slowest *s)
{
    struct etch_span typical = middle_of(s);

    for (size_t i = 0; i < s->slow.n; i++) {
        struct etch_slow_call *slow = &s->slow.v[i];
        const struct etch_span *cost = &slow->detail.call.cost;

        slow->more.lo = cost->lo > typical.hi ? cost->lo - typical.hi : 0;
        slow->more.hi = cost->hi > typical.lo ? cost->hi - typical.lo : 0;
    }
    drop_uncertain(s);
    for (size_t i = 0; i < s->slow.n; i++) {
        struct etch_slow_call *slow = &s->slow.v[i];

        if (!add_waits(s, slow) || !add_paths(s, slow))
            return -1;
        share(s, slow);
    }
    if (s->slow.n)
        qsort(s->slow.v, s->slow.n, sizeof(*s->slow.v), slower_first);
    return 0;
}
