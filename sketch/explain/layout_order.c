/* SPDX-License-Identifier: MIT */
/* The order of a sketch's steps: only proven orders are shown as such; see layout.h. */
#include "sketch/explain/layout.h"
#include "sketch/runs/order.h"

#include <stdlib.h>

static uint32_t sync_event(const struct etch_run *run, const struct layout_item *item)
{
    uint32_t event = ETCH_NOWHERE;

    for (size_t i = 0; i < run->syncs.n; i++)
        if (run->syncs.v[i].thread == item->thread && run->syncs.v[i].place == item->place)
            event = run->syncs.v[i].event;
    return event;
}

/* True if another item of the thread lies between the beginning of this item and its access. The item is then a call,
 * which began before the called code. */
static bool is_around(const struct composition *c, const struct layout_item *item, uint64_t seq)
{
    for (size_t i = 0; i < c->items.n; i++)
        if (c->items.v[i].thread == item->thread && c->items.v[i].seq > item->seq && c->items.v[i].seq < seq)
            return true;
    return false;
}

/* Without control flow the time of a visit is the stamp of its event. A stamp is no bound by itself: it is taken before
 * or after its event. */
static void bound_by_event(const struct composition *c, struct layout_item *item)
{
    if (item->event == ETCH_NOWHERE && item->access == ETCH_NOWHERE)
        return; /* a call on the stack: its time is a bound */
    item->not_before = 0;
    item->by = UINT64_MAX;
    if (c->run->order)
        etch_run_order_bounds(c->run->order, item->event, &item->not_before, &item->by);
}

/* The time of an item: that of its access, or else that of its step. */
static void settle_time(struct composition *c, struct layout_item *item)
{
    const struct etch_run_access *a = item->access != ETCH_NOWHERE ? &c->run->accesses.v[item->access] : NULL;

    item->event = ETCH_NOWHERE;
    item->not_before = item->lo;
    item->by = item->hi;
    if (item->not_yet || (a && a->crash)) /* when it failed says nothing of when it was read */
        return;
    if (a && a->seq != UINT64_MAX && item->seq != UINT64_MAX && is_around(c, item, a->seq))
        return;
    item->event = a ? a->event : sync_event(c->run, item);
    if (a) {
        item->lo = a->lo ? a->lo : a->hi;
        item->hi = a->hi;
    }
    if (a || !c->run->flow)
        bound_by_event(c, item);
}

static int by_thread_order(const void *x, const void *y)
{
    const struct layout_item *a = x, *b = y;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Items are sorted by thread. */
static bool is_before(const struct composition *c, size_t i, size_t k)
{
    const struct layout_item *a = &c->items.v[i], *b = &c->items.v[k];
    int order;

    if (a->thread == b->thread)
        return i < k;
    if (a->not_yet || b->not_yet)
        return !a->not_yet && b->not_yet; /* a statement that had not run comes after all that did */
    if (a->event != ETCH_NOWHERE && b->event != ETCH_NOWHERE) {
        order = etch_run_order_compare(c->run->order, a->event, b->event);
        if (order || (a->access != ETCH_NOWHERE && b->access != ETCH_NOWHERE))
            return order < 0;
    }
    return c->run->clocks_known && a->by < b->not_before && b->not_before - a->by > c->run->clock_width;
}

static void close_over(bool *before, size_t n)
{
    for (size_t m = 0; m < n; m++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; before[i * n + m] && k < n; k++)
                before[i * n + k] |= before[m * n + k];
}

/* The item to show next: of those with nothing unshown before them, the earliest. */
static size_t next_item(const struct composition *c, const bool *done)
{
    size_t n = c->items.n, best = SIZE_MAX;

    for (size_t i = 0; i < n; i++) {
        bool ready = !done[i];

        for (size_t k = 0; ready && k < n; k++)
            ready = done[k] || !c->before[k * n + i] || c->before[i * n + k];
        if (ready && (best == SIZE_MAX || c->items.v[i].lo < c->items.v[best].lo))
            best = i;
    }
    for (size_t i = 0; best == SIZE_MAX && i < n; i++)
        best = done[i] ? SIZE_MAX : i; /* contradictory times: any order will do, and none is claimed */
    return best;
}

static bool rearrange(struct composition *c, const size_t *order)
{
    size_t n = c->items.n;
    struct layout_item *items = malloc(n * sizeof(*items));
    bool *before = malloc(n * n);

    for (size_t i = 0; items && before && i < n; i++) {
        items[i] = c->items.v[order[i]];
        for (size_t k = 0; k < n; k++)
            before[i * n + k] = c->before[order[i] * n + order[k]];
    }
    for (size_t i = 0; items && before && i < n; i++)
        c->items.v[i] = items[i];
    free(items);
    if (!before)
        return false;
    free(c->before);
    c->before = before;
    return items != NULL;
}

bool etch_layout_is_open(const struct composition *c, uint32_t one, uint32_t other)
{
    size_t n = c->items.n;

    return c->before[one * n + other] == c->before[other * n + one];
}

static void rank(struct composition *c)
{
    uint32_t group = 0;

    for (uint32_t i = 0; i < c->items.n; i++) {
        bool unordered = i > 0;

        for (uint32_t k = group; unordered && k < i; k++)
            unordered = etch_layout_is_open(c, k, i);
        if (!unordered)
            group = i;
        c->items.v[i].rank = i == 0 ? 0 : c->items.v[i - 1].rank + !unordered;
    }
}

bool etch_layout_sort(struct composition *c)
{
    size_t n = c->items.n;
    size_t *order = calloc(n + 1, sizeof(*order));
    bool *done = calloc(n + 1, sizeof(*done)), good;

    c->before = calloc(n * n + 1, sizeof(*c->before));
    good = order && done && c->before;
    if (good && n) {
        for (size_t i = 0; i < n; i++)
            settle_time(c, &c->items.v[i]);
        qsort(c->items.v, n, sizeof(*c->items.v), by_thread_order);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < n; k++)
                c->before[i * n + k] = i != k && is_before(c, i, k);
        close_over(c->before, n);
        for (size_t i = 0; i < n; i++) {
            order[i] = next_item(c, done);
            done[order[i]] = true;
        }
        good = rearrange(c, order);
        rank(c);
    }
    free(order);
    free(done);
    return good;
}
