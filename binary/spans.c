/* SPDX-License-Identifier: MIT */
/* Nested address ranges made flat; see spans.h. */
#include "binary/spans.h"

static int compare(const void *a, const void *b)
{
    const struct etch_span_range *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static bool emit(struct etch_spans *out, uint64_t start, uint32_t value)
{
    struct etch_span span = {start, value};

    if (out->spans.n && out->spans.v[out->spans.n - 1].start == start) {
        out->spans.v[out->spans.n - 1].value = value;
        return true;
    }
    if (out->spans.n && out->spans.v[out->spans.n - 1].value == value)
        return true;
    return etch_array_push(&out->spans, span);
}

typedef ETCH_ARRAY(struct etch_span_range) stack;

/* Leaves every open range that ends at or before `limit`. */
static bool leave(struct etch_spans *out, stack *open, uint64_t limit)
{
    while (open->n && open->v[open->n - 1].end <= limit) {
        uint64_t end = open->v[open->n - 1].end;

        while (open->n && open->v[open->n - 1].end <= end)
            open->n--;
        if (!emit(out, end, open->n ? open->v[open->n - 1].value : ETCH_SPAN_NONE))
            return false;
    }
    return true;
}

bool etch_spans_make(struct etch_spans *spans, struct etch_span_range *ranges, size_t n)
{
    stack open = {0};
    bool done = false;

    if (n)
        qsort(ranges, n, sizeof(*ranges), compare);
    for (size_t i = 0; i < n; i++) {
        struct etch_span_range range = ranges[i];

        if (range.start >= range.end)
            continue;
        if (!leave(spans, &open, range.start))
            goto out;
        if (open.n && range.end > open.v[open.n - 1].end)
            range.end = open.v[open.n - 1].end;
        if (!etch_array_push(&open, range) || !emit(spans, range.start, range.value))
            goto out;
    }
    done = leave(spans, &open, UINT64_MAX);
out:
    etch_array_free(&open);
    return done;
}

uint32_t etch_spans_find(const struct etch_spans *spans, uint64_t address, uint64_t *until)
{
    size_t lo = 0, hi = spans->spans.n;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;

        if (spans->spans.v[middle].start <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    *until = lo < spans->spans.n ? spans->spans.v[lo].start : UINT64_MAX;
    return lo ? spans->spans.v[lo - 1].value : ETCH_SPAN_NONE;
}

void etch_spans_release(struct etch_spans *spans)
{
    etch_array_free(&spans->spans);
}
