/* SPDX-License-Identifier: MIT */
/* The ranges of the CPUs' clocks, from the clock records of a recording; see timeline.h. */
#include "decoder/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Etch__Skew *find_skew(const Etch__Clock *clock, uint32_t cpu, Etch__SkewMethod method)
{
    for (size_t i = 0; clock && i < clock->n_skews; i++)
        if (clock->skews[i]->cpu == cpu && clock->skews[i]->method == method)
            return clock->skews[i];
    return NULL;
}

static int refuse(struct etch_timeline_clocks *clocks, const char *why)
{
    clocks->refused = true;
    snprintf(clocks->why, sizeof(clocks->why), "%s", why);
    return 0;
}

static bool apart(const Etch__Skew *x, const Etch__Skew *y)
{
    return x && y && (x->hi < y->lo || y->hi < x->lo);
}

#define CPUS_MAX 2048            /* what a conflict is looked for in is as large as its square */
#define SKEW_MAX (INT64_MAX / 8) /* beyond it a record is damaged; sums of some of these do not overflow */

static bool sane(const Etch__Skew *skew)
{
    return skew->lo <= skew->hi && skew->lo >= -SKEW_MAX && skew->hi <= SKEW_MAX;
}

/* Did the statistics see the clock move? Line by line where that was compared, else by the two intervals. */
static bool moved(const Etch__Skew *before, const Etch__Skew *after)
{
    if (after && (after->moved_lo != 0 || after->moved_hi != 0))
        return after->moved_lo > 0 || after->moved_hi < 0;
    return apart(before, after);
}

/* See timeline.h. */
static int64_t margin_of(const struct etch_cpu_range *range, bool guest, int64_t margin)
{
    if (margin != 0 || !guest)
        return margin;
    return (range->hi - range->lo) / 2 + 1;
}

static void set_range(struct etch_timeline_clocks *clocks, uint32_t cpu, const Etch__Clock *before,
                      const Etch__Clock *after, bool guest, int64_t margin)
{
    const Etch__Skew *b = find_skew(before, cpu, ETCH__SKEW_METHOD__SKEW_BOUNDS);
    const Etch__Skew *a = find_skew(after, cpu, ETCH__SKEW_METHOD__SKEW_BOUNDS);
    struct etch_cpu_range *range = &clocks->cpus[cpu];

    if (cpu == clocks->reference) {
        range->known = true;
        return;
    }
    if (!b || !sane(b) || (a && !sane(a)))
        return;
    if (apart(a, b)) {
        clocks->changed++;
        range->local = false; /* which way, and when, is not known */
        return;
    }
    clocks->shifted += moved(find_skew(before, cpu, ETCH__SKEW_METHOD__SKEW_STATISTICS),
                             find_skew(after, cpu, ETCH__SKEW_METHOD__SKEW_STATISTICS));
    range->lo = a && a->lo < b->lo ? a->lo : b->lo;
    range->hi = a && a->hi > b->hi ? a->hi : b->hi;
    range->known = true;
    margin = margin_of(range, guest, margin);
    range->lo -= margin;
    range->hi += margin;
    clocks->margin = margin > clocks->margin ? margin : clocks->margin;
}

static void set_conversion(struct etch_timeline_clocks *clocks, const Etch__Clock *before, const Etch__Clock *after)
{
    /* The one after was fitted over the whole recording. */
    const Etch__PerfClock *p = after && after->perf_clock ? after->perf_clock : before->perf_clock;

    if (!p || !(p->tsc_per_ns > 0) || !isfinite(p->tsc_per_ns))
        return;
    clocks->tsc_per_ns = p->tsc_per_ns;
    clocks->ns_zero = p->ns_zero;
    clocks->tsc_zero = p->tsc_zero;
    clocks->conversion_error = p->error_cycles;
    clocks->span_ns = p->span_ns;
}

int etch_timeline_clocks(struct etch_timeline_clocks *clocks, Etch__Clock *const *records, size_t n, bool guest,
                         int64_t margin, struct etch_error *err)
{
    const Etch__Clock *before = NULL, *after = NULL;

    memset(clocks, 0, sizeof(*clocks));
    for (size_t i = 0; i < n; i++) {
        if (records[i]->phase == ETCH__CLOCK_PHASE__CLOCK_BEFORE)
            before = records[i];
        if (records[i]->phase == ETCH__CLOCK_PHASE__CLOCK_AFTER)
            after = records[i];
        for (size_t k = 0; k < records[i]->n_skews; k++)
            if (records[i]->skews[k]->cpu < CPUS_MAX && records[i]->skews[k]->cpu >= clocks->n_cpus)
                clocks->n_cpus = records[i]->skews[k]->cpu + 1;
        if (records[i]->reference_cpu < CPUS_MAX && records[i]->reference_cpu >= clocks->n_cpus)
            clocks->n_cpus = records[i]->reference_cpu + 1;
    }
    clocks->cpus = calloc((size_t)clocks->n_cpus + 1, sizeof(*clocks->cpus));
    if (!clocks->cpus)
        return etch_error_no_memory(err);
    for (uint32_t cpu = 0; cpu < clocks->n_cpus; cpu++)
        clocks->cpus[cpu].local = true;
    if (!before)
        return refuse(clocks, "the clocks were not measured before the recording");
    clocks->reference = before->reference_cpu;
    set_conversion(clocks, before, after);
    if (!before->constant || !before->nonstop)
        return refuse(clocks, "the time stamp counter of that machine is not constant and nonstop");
    if (after && (!after->constant || !after->nonstop))
        return refuse(clocks, "the time stamp counter was found unfit after the recording");
    if (after && after->reference_cpu != before->reference_cpu)
        return refuse(clocks, "the clocks were measured against different CPUs before and after");
    for (uint32_t cpu = 0; cpu < clocks->n_cpus; cpu++)
        set_range(clocks, cpu, before, after, guest, margin);
    clocks->any = etch_cpu_range_any(clocks->cpus, clocks->n_cpus);
    return 0;
}

void etch_timeline_clocks_free(struct etch_timeline_clocks *clocks)
{
    free(clocks->cpus);
    clocks->cpus = NULL;
}

#define ERROR_MAX (UINT32_MAX / 2)

/* A line that is off by so much at either end may be off by more beyond it, in proportion: where the recorder did not
 * live to measure again, all of the recording lies beyond. */
static uint32_t error_at(const struct etch_timeline_clocks *clocks, uint64_t ns)
{
    double away = fabs((double)(int64_t)(ns - clocks->ns_zero)), half = (double)clocks->span_ns / 2;
    double error = (double)clocks->conversion_error;

    if (half > 0 && away > half)
        error = ceil(error * away / half);
    return error < ERROR_MAX ? (uint32_t)error : ERROR_MAX;
}

bool etch_timeline_from_perf(const struct etch_timeline_clocks *clocks, uint64_t ns, uint64_t *tsc, uint32_t *error)
{
    double cycles;

    if (clocks->tsc_per_ns == 0)
        return false;
    cycles = (double)(int64_t)(ns - clocks->ns_zero) * clocks->tsc_per_ns;
    if (!(fabs(cycles) < 9e18))
        return false;
    *error = error_at(clocks, ns);
    if (*error == ERROR_MAX)
        return false; /* it says nothing */
    *tsc = clocks->tsc_zero + (uint64_t)(int64_t)llround(cycles);
    return true;
}
