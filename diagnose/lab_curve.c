/* SPDX-License-Identifier: MIT */
/* Where the failure of a schedule was decided: the first points of the schedule are followed, and other schedules
 * decide what comes then. The latest point from which a run still passes gives the nearest run that passes; see
 * lab_work.h. */
#include "diagnose/lab_work.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define SEEDS 4u       /* runs from one point */
#define MORE_SEEDS 15u /* the same from the start, if no run has passed */
#define PROBES 10u     /* points that are tried, at most */

/* The first `points` points of the shortened schedule. */
static bool cut(const struct etch_lab_schedule *s, uint64_t points, etch_lab_segments *to)
{
    to->n = 0;
    for (size_t i = 0; i < s->segments.n && points; i++) {
        struct etch_lab_segment segment = s->segments.v[i];

        segment.count = segment.count < points ? segment.count : (uint32_t)points;
        points -= segment.count;
        if (!etch_array_push(to, segment))
            return false;
    }
    return true;
}

/* Some failures need many switches less, others more: a thread goes on for long, or gives way at once. */
static struct etch_lab_spec spec_of(uint32_t seed)
{
    return (struct etch_lab_spec){
        .kind = seed % 2 ? ETCH_LAB_PCT : ETCH_LAB_RANDOM, .seed = 500 + seed / 2, .depth = 1};
}

static uint32_t count_sites(const uint64_t *sites)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ETCH_LAB_SITES; i++)
        n += sites[i] != 0;
    return n;
}

/* A run that goes on behind the failure may show instructions that share memory too. */
static bool keep_sites(struct etch_lab_work *w, const struct etch_lab_result *r)
{
    const uint64_t *known = w->cause->more_sites ? w->cause->more_sites : w->request.sites;

    if (!known || count_sites(r->shared->learnt) <= count_sites(known))
        return true;
    if (!w->cause->more_sites)
        w->cause->more_sites = malloc(sizeof(r->shared->learnt));
    if (w->cause->more_sites)
        memcpy(w->cause->more_sites, r->shared->learnt, sizeof(r->shared->learnt));
    return w->cause->more_sites != NULL;
}

/* Runs from one point until a run passes. Returns 1 if one does, 0, or -1 with the error set. */
static int probe(struct etch_lab_work *w, const etch_lab_segments *first, uint32_t seeds,
                 struct etch_lab_curve_point *at)
{
    const struct etch_lab_segment none = {0};

    for (uint32_t seed = 0; seed < seeds && !etch_lab_work_is_over(w); seed++) {
        struct etch_lab_result r;
        enum etch_lab_verdict verdict;
        bool good = true;

        w->request.repeat = first->n ? first->v : &none;
        w->request.n_repeat = (uint32_t)first->n;
        w->request.spec = spec_of(seed);
        verdict = etch_lab_experiment_once(w, &r);
        if (verdict == ETCH_LAB_BROKEN)
            return -1;
        if (verdict == ETCH_LAB_PASSED)
            good = etch_lab_work_keep(&w->nearest, &w->n_nearest, &r) && keep_sites(w, &r);
        etch_lab_result_release(&r);
        if (!good)
            return etch_error_no_memory(w->err);
        at->of += verdict != ETCH_LAB_NOT_KEPT;
        at->failed += verdict == ETCH_LAB_FAILED || verdict == ETCH_LAB_FAILED_OTHERWISE;
        if (verdict == ETCH_LAB_PASSED)
            return 1;
    }
    return 0;
}

int etch_lab_find_nearest(struct etch_lab_work *w, const etch_lab_segments *shortest)
{
    struct etch_lab_curve *curve = &w->cause->curve;
    const struct etch_lab_schedule s = {.segments = {.v = shortest->v, .n = shortest->n}};
    etch_lab_segments first = {0};
    uint64_t from = 0, to = 0; /* a run from `from` passes, if one does; none from `to` does */
    int status = 0;

    for (size_t i = 0; i < shortest->n; i++)
        to += shortest->v[i].count;
    curve->points = to;
    while (status >= 0 && from + 1 < to && curve->n < PROBES && !etch_lab_work_is_over(w)) {
        struct etch_lab_curve_point *at = &curve->v[curve->n++];

        *at = (struct etch_lab_curve_point){.point = from + (to - from) / 2};
        status = cut(&s, at->point, &first) ? probe(w, &first, SEEDS, at) : etch_error_no_memory(w->err);
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "after %llu of %llu points: %u of %u fail",
                 (unsigned long long)at->point, (unsigned long long)curve->points, at->failed, at->of);
        if (status > 0)
            from = at->point;
        else
            to = at->point;
    }
    first.n = 0;
    if (status >= 0 && !w->n_nearest && !w->passing.n)
        status = probe(w, &first, MORE_SEEDS, &curve->v[curve->n++]);
    etch_array_free(&first);
    w->request.repeat = NULL;
    w->request.n_repeat = 0;
    return status < 0 ? -1 : 0;
}
