/* SPDX-License-Identifier: MIT */
/* See nested.h. The ranges come from debug information, so they need not nest properly: where two overlap otherwise,
 * the one that begins later counts as the inner one as far as it reaches. */
#include "slicer/model/nested.h"

#include <stdlib.h>

typedef ETCH_ARRAY(struct etch_nested_range) stack;

bool etch_nested_add(struct etch_nested *n, uint64_t start, uint64_t end, uint32_t depth, uint32_t value)
{
    struct etch_nested_range range = {start, end, depth, value};

    return start >= end || etch_array_push(&n->ranges, range);
}

static int compare(const void *a, const void *b)
{
    const struct etch_nested_range *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->depth < y->depth ? -1 : x->depth > y->depth;
}

/* The open ranges up to an address, innermost first, as flat ones. `at` is how far the flat ones reach. */
static bool close_until(struct etch_nested *n, stack *open, uint64_t *at, uint64_t until)
{
    while (open->n && *at < until) {
        struct etch_nested_range top = open->v[open->n - 1];
        uint64_t end = top.end < until ? top.end : until;

        if (end > *at) {
            struct etch_nested_range flat = {*at, end, top.depth, top.value};

            if (!etch_array_push(&n->flat, flat))
                return false;
            *at = end;
        }
        if (top.end > end)
            break;
        open->n--;
    }
    return true;
}

bool etch_nested_flatten(struct etch_nested *n)
{
    stack open = {0};
    uint64_t at = 0;
    bool fine = true;

    if (n->ranges.n)
        qsort(n->ranges.v, n->ranges.n, sizeof(*n->ranges.v), compare);
    for (size_t i = 0; i < n->ranges.n && fine; i++) {
        fine = close_until(n, &open, &at, n->ranges.v[i].start) && etch_array_push(&open, n->ranges.v[i]);
        at = n->ranges.v[i].start;
    }
    fine = fine && close_until(n, &open, &at, UINT64_MAX);
    etch_array_free(&open);
    etch_array_free(&n->ranges);
    return fine;
}

bool etch_nested_find(const struct etch_nested *n, uint64_t address, uint32_t *value)
{
    size_t lo = 0, hi = n->flat.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (n->flat.v[mid].start <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo || address >= n->flat.v[lo - 1].end)
        return false;
    *value = n->flat.v[lo - 1].value;
    return true;
}

void etch_nested_release(struct etch_nested *n)
{
    etch_array_free(&n->ranges);
    etch_array_free(&n->flat);
}
