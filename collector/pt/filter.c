/* SPDX-License-Identifier: MIT */
/* Address filters; see pt_filter.h. */
#include "collector/pt/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *text, const char *why, struct etch_error *err)
{
    etch_error_set(err, "cannot filter by '%s': %s", text, why);
    return etch_error_advise(err, "plan, a function's name, or START-END such as 0x1140-0x1180, as nm shows addresses");
}

static int parse_function(struct etch_filter_range *range, const char *text, const struct etch_object *object,
                          struct etch_error *err)
{
    struct etch_symbol symbol = {0};
    size_t n = object ? etch_object_symbol(object, text, &symbol) : 0;

    if (!n)
        return refuse(text, "the program has no function of that name", err);
    if (n > 1)
        return refuse(text, "there are several functions of that name", err);
    if (!symbol.function || !symbol.size)
        return refuse(text, "it is no function with a known size", err);
    *range = (struct etch_filter_range){symbol.address, symbol.address + symbol.size};
    return 0;
}

int etch_range_parse(struct etch_filter_range *range, const char *text, const struct etch_object *object,
                     struct etch_error *err)
{
    char *end;

    if (strncmp(text, "0x", 2) != 0)
        return parse_function(range, text, object, err);
    errno = 0;
    range->start = strtoull(text, &end, 16);
    if (errno || *end != '-' || strncmp(end + 1, "0x", 2) != 0)
        return refuse(text, "this is no range", err);
    range->end = strtoull(end + 1, &end, 16);
    if (errno || *end)
        return refuse(text, "this is no range", err);
    return range->start < range->end ? 0 : refuse(text, "it is empty", err);
}

static int by_start(const void *a, const void *b)
{
    const struct etch_filter_range *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static void join_next(struct etch_filter_ranges *r, size_t i)
{
    struct etch_filter_range *v = r->list.v;

    v[i].end = v[i].end > v[i + 1].end ? v[i].end : v[i + 1].end;
    memmove(&v[i + 1], &v[i + 2], (r->list.n - i - 2) * sizeof(*v));
    r->list.n--;
}

uint64_t etch_ranges_join(struct etch_filter_ranges *r, size_t limit)
{
    uint64_t more = 0;

    if (r->list.n)
        qsort(r->list.v, r->list.n, sizeof(r->list.v[0]), by_start);
    for (size_t i = 0; i + 1 < r->list.n;) {
        if (r->list.v[i].end >= r->list.v[i + 1].start)
            join_next(r, i);
        else
            i++;
    }
    while (limit && r->list.n > limit) {
        size_t best = 0;
        uint64_t least = UINT64_MAX;

        for (size_t i = 0; i + 1 < r->list.n; i++)
            if (r->list.v[i + 1].start - r->list.v[i].end < least) {
                least = r->list.v[i + 1].start - r->list.v[i].end;
                best = i;
            }
        more += least;
        join_next(r, best);
    }
    return more;
}

int etch_pt_filter_write(char *text, size_t size, const struct etch_filter_ranges *ranges,
                         const struct etch_object *object, const char *path, struct etch_error *err)
{
    size_t used = 0;

    if (strpbrk(path, " ,\n\t"))
        return etch_error_set(err, "cannot filter in %s: the kernel takes no path with a space or comma", path);
    for (size_t i = 0; i < ranges->list.n; i++) {
        const struct etch_filter_range *r = &ranges->list.v[i];
        uint64_t offset;
        int n;

        if (!etch_object_offset(object, r->start, &offset))
            return etch_error_set(err, "cannot filter 0x%" PRIx64 "-0x%" PRIx64 ": not within the code of %s", r->start,
                                  r->end, path);
        n = snprintf(text + used, size - used, "%sfilter 0x%" PRIx64 "/0x%" PRIx64 "@%s", i ? "," : "", offset,
                     r->end - r->start, path);
        if (n < 0 || (size_t)n >= size - used)
            return etch_error_set(err, "cannot filter in %s: its path is too long", path);
        used += (size_t)n;
    }
    return 0;
}
