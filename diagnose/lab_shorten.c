/* SPDX-License-Identifier: MIT */
/* Shortens a failing schedule; see lab_work.h. */
#include "diagnose/lab_work.h"

#include <stdlib.h>
#include <string.h>

#define SHORTENING 60u /* runs, at most */

static bool add_segment(etch_lab_segments *to, struct etch_lab_segment s)
{
    if (to->n && to->v[to->n - 1].thread == s.thread) {
        to->v[to->n - 1].count += s.count;
        return true;
    }
    return etch_array_push(to, s);
}

/* Copies the segments without the `n` segments from `at` on. The points of a dropped segment are added to the next
 * segment of the same thread. */
static bool drop(const etch_lab_segments *from, size_t at, size_t n, etch_lab_segments *to)
{
    uint32_t dropped[ETCH_LAB_THREADS] = {0}; /* points of each thread that its next segment still has to take */

    to->n = 0;
    for (size_t i = 0; i < from->n; i++) {
        struct etch_lab_segment s = from->v[i];
        uint32_t *points = &dropped[s.thread % ETCH_LAB_THREADS];

        if (i >= at && i - at < n) {
            *points += s.count;
            continue;
        }
        s.count += *points;
        *points = 0;
        if (!add_segment(to, s))
            return false;
    }
    return true;
}

static bool copy_segments(etch_lab_segments *to, const struct etch_lab_segment *v, size_t n)
{
    to->n = 0;
    if (!etch_array_reserve(to, n + 1) || !to->v)
        return false;
    for (size_t i = 0; i < n; i++)
        to->v[to->n++] = v[i];
    return true;
}

/* Tries a schedule. If the run fails in the same way and is shorter, the segments that really ran become the schedule.
 * Returns 1 if so, 0 if not, -1 with the error set. */
static int attempt(struct etch_lab_work *w, const etch_lab_segments *trial, etch_lab_segments *shortest)
{
    struct etch_lab_result r;
    enum etch_lab_verdict verdict;
    bool good = true, shorter = false;

    w->request.repeat = trial->v;
    w->request.n_repeat = (uint32_t)trial->n;
    verdict = etch_lab_experiment_once(w, &r);
    if (verdict == ETCH_LAB_BROKEN)
        return -1;
    if (verdict == ETCH_LAB_FAILED && (!shortest->n || r.shared->n_segments < shortest->n)) {
        shorter = true;
        good = copy_segments(shortest, r.shared->segments, r.shared->n_segments) &&
               etch_lab_work_keep(&w->events, &w->n_events, &r) &&
               etch_lab_schedule_keep_input(&w->cause->schedule, r.shared);
        w->cause->schedule.points = r.shared->points;
        w->cause->schedule.hash = r.shared->hash;
    }
    etch_lab_result_release(&r);
    return good ? shorter : etch_error_no_memory(w->err);
}

/* Halves, quarters, ... single segments, as long as something can be left out. */
static int leave_out(struct etch_lab_work *w, etch_lab_segments *shortest)
{
    etch_lab_segments trial = {0};
    int status = 0;

    for (size_t n = shortest->n / 2; n >= 1 && status >= 0; n /= 2)
        for (size_t at = 0;
             at < shortest->n && w->cause->runs < SHORTENING && !etch_lab_work_is_over(w) && status >= 0;) {
            status = drop(shortest, at, n, &trial) ? 0 : etch_error_no_memory(w->err);
            if (status == 0)
                status = trial.n && trial.n < shortest->n ? attempt(w, &trial, shortest) : 0;
            at += status > 0 ? 0 : n;
        }
    etch_array_free(&trial);
    return status < 0 ? -1 : 0;
}

int etch_lab_shorten(struct etch_lab_work *w, etch_lab_segments *shortest)
{
    const struct etch_lab_schedule *failing = w->failing;
    etch_lab_segments all = {0};
    int status = copy_segments(&all, failing->segments.v, failing->segments.n) ? attempt(w, &all, shortest)
                                                                               : etch_error_no_memory(w->err);

    etch_array_free(&all);
    return status > 0 && leave_out(w, shortest) < 0 ? -1 : status;
}
