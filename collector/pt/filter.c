/* SPDX-License-Identifier: MIT */
/* Address filters; see filter.h. */
#include "collector/pt/filter.h"

#include "collector/session/plan_file.h"
#include "collector/session/process.h"

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

/* ---- What the user asked for ---- */

struct plan_ranges {
    struct etch_filter_ranges *ranges;
    const struct etch_object *object;
    const char *plan;
};

static int take_plan(void *context, const Etch__Plan *plan, struct etch_error *err)
{
    struct plan_ranges *to = context;
    uint8_t id[64];
    size_t n = etch_object_build_id(to->object, id);

    if (plan->build_id.len && (plan->build_id.len != n || memcmp(plan->build_id.data, id, n) != 0)) {
        etch_error_set(err, "the plan %s was made for another build of the program", to->plan);
        return etch_error_advise(err, "etch slice, on this build");
    }
    for (size_t i = 0; i < plan->n_track; i++) {
        struct etch_filter_range range = {plan->track[i]->start, plan->track[i]->end};

        if (range.start < range.end && !etch_array_push(&to->ranges->list, range))
            return etch_error_set(err, "cannot record with Intel PT: out of memory");
    }
    if (to->ranges->list.n)
        return 0;
    return etch_error_set(err, "the plan %s has no ranges of code to trace", to->plan);
}

static int gather_ranges(struct etch_filter_ranges *ranges, const struct etch_record_options *o,
                         const struct etch_object *object, struct etch_error *err)
{
    for (size_t i = 0; i < o->n_filters; i++) {
        struct plan_ranges plan = {ranges, object, o->plan};
        struct etch_filter_range range;

        if (strcmp(o->filters[i], "plan") == 0) {
            if (!o->plan)
                return etch_error_set(err, "--filter plan needs --plan FILE");
            if (etch_plan_file_visit(o->plan, take_plan, &plan, err) < 0)
                return -1;
            continue;
        }
        if (etch_range_parse(&range, o->filters[i], object, err) < 0)
            return -1;
        if (!etch_array_push(&ranges->list, range))
            return etch_error_set(err, "cannot record with Intel PT: out of memory");
    }
    return 0;
}

static void note_ranges(const struct etch_sink *sink, size_t limit, size_t asked, size_t left, uint64_t more)
{
    char text[200];

    if (!limit)
        snprintf(text, sizeof(text), "this CPU has no address filters: all code is recorded");
    else if (more)
        snprintf(text, sizeof(text),
                 "%zu ranges were joined to the %zu filters that this CPU has: %" PRIu64 " bytes of code more", asked,
                 left, more);
    else
        return;
    sink->note(sink->context, text);
}

int etch_pt_filter_make(struct etch_pt_filter *filter, const struct etch_record_options *o, size_t limit, pid_t pid,
                        const struct etch_sink *sink, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_filter_ranges ranges = {0};
    char link[64], path[4096];
    int status = 0;

    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    etch_process_exe(pid, path, sizeof(path));
    if (etch_object_open(&object, link, err) < 0 || gather_ranges(&ranges, o, object, err) < 0)
        status = -1;
    if (status == 0) {
        size_t asked = ranges.list.n;
        uint64_t more = etch_ranges_join(&ranges, limit);

        note_ranges(sink, limit, asked, ranges.list.n, more);
        filter->n = limit ? ranges.list.n : 0;
        if (filter->n)
            status = etch_pt_filter_write(filter->text, sizeof(filter->text), &ranges, object, path, err);
    }
    etch_array_free(&ranges.list);
    etch_object_free(object);
    return status;
}
