/* SPDX-License-Identifier: MIT */
/* Skew from rounds; see skew.h. */
#include "calibrate/skew.h"

#include "calibrate/student.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void etch_skew_bounds_add(struct etch_skew_bounds *bounds, const struct etch_skew_round *r)
{
    /* Differences of two clocks near each other, so they fit, also where the subtraction wraps. */
    int64_t below = (int64_t)(r->b_begin - r->a_end);
    int64_t above = (int64_t)(r->b_end - r->a_begin);

    if (r->b_second && above < bounds->hi)
        bounds->hi = above;
    if (!r->b_second && below > bounds->lo)
        bounds->lo = below;
    bounds->rounds++;
}

bool etch_skew_bounds_known(const struct etch_skew_bounds *bounds)
{
    return bounds->lo != INT64_MIN && bounds->hi != INT64_MAX && bounds->lo < bounds->hi;
}

bool etch_skew_bounds_contradict(const struct etch_skew_bounds *bounds)
{
    return bounds->lo != INT64_MIN && bounds->hi != INT64_MAX && bounds->lo >= bounds->hi;
}

static int ascending(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x;
    int64_t b = *(const int64_t *)y;

    return (a > b) - (a < b);
}

/* The first of the sorted v that is greater than `limit`. */
static size_t first_above(const int64_t *v, size_t n, double limit)
{
    size_t lo = 0;

    while (n > 0) {
        size_t half = n / 2;

        if ((double)v[lo + half] <= limit) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

static double middle_of(int64_t x, int64_t y)
{
    return ((double)x + (double)y) / 2;
}

/* The border of the two spikes: the middle between the medians of both sides, repeated until it stays. */
static size_t split(const int64_t *v, size_t n)
{
    size_t tenth = n / 10;
    size_t at = first_above(v, n, middle_of(v[tenth], v[n - 1 - tenth]));

    for (int turn = 0; turn < 50 && at > 0 && at < n; turn++) {
        size_t left = at / 2, right = at + (n - at) / 2;
        size_t next = first_above(v, n, middle_of(v[left], v[right]));

        if (next == at)
            break;
        at = next;
    }
    return at;
}

/* The mean of the samples near the median: within twice the middle half's width, and at least two cycles. Disturbed
 * samples lie thousands of cycles off. The cut is symmetric, so it does not move the mean of a symmetric spike. */
static double spike(const int64_t *v, size_t n, size_t *dropped)
{
    int64_t median = v[n / 2];
    int64_t reach = 2 + 2 * (v[n - 1 - n / 4] - v[n / 4]);
    double sum = 0;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (v[i] < median - reach || v[i] > median + reach)
            continue;
        sum += (double)(v[i] - median);
        kept++;
    }
    *dropped += n - kept;
    return (double)median + sum / (double)kept;
}

double etch_skew_estimate(int64_t *differences, size_t n, size_t *dropped)
{
    size_t at;
    double left, right;

    if (n < 8)
        return NAN;
    qsort(differences, n, sizeof(*differences), ascending);
    at = split(differences, n);
    if (at < 2 || n - at < 2)
        return NAN; /* one CPU got the line first every time: half the evidence is missing */
    left = spike(differences, at, dropped);
    right = spike(differences + at, n - at, dropped);
    return (left + right) / 2;
}

static int ascending_double(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;

    return (a > b) - (a < b);
}

/* Trims the sorted v: drops estimates further from the median than ten times the width of the middle half. They are
 * from a line on which most rounds were disturbed. Moves `v` to the first kept estimate, and returns the number of kept
 * estimates. Symmetric, as in spike(). */
static size_t trim(const double **v, size_t n)
{
    double reach = n ? 10 * ((*v)[n - 1 - n / 4] - (*v)[n / 4]) + 1 : 0;
    double median = n ? (*v)[n / 2] : 0;

    while (n > 0 && **v < median - reach) {
        ++*v;
        n--;
    }
    while (n > 0 && (*v)[n - 1] > median + reach)
        n--;
    return n;
}

int etch_skew_interval(const double *estimates, size_t n, double confidence, struct etch_skew_interval *interval)
{
    double *sorted = malloc((n + 1) * sizeof(*sorted));
    const double *v = sorted;
    double mean = 0;
    double squares = 0;

    memset(interval, 0, sizeof(*interval));
    if (!sorted)
        return -1;
    memcpy(sorted, estimates, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), ascending_double);
    n = trim(&v, n);
    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    free(sorted);
    if (n < 2)
        return -1;
    interval->deviation = sqrt(squares / (double)(n - 1));
    interval->mean = mean;
    interval->confidence = confidence;
    interval->values = n;
    interval->lo = mean - interval->deviation / sqrt((double)n) * etch_student_quantile(confidence, (double)(n - 1));
    interval->hi = 2 * mean - interval->lo;
    return 0;
}

/* Welch: two means whose deviations need not be alike. */
static bool means_differ(const struct etch_skew_interval *x, const struct etch_skew_interval *y, double floor)
{
    double vx = x->deviation * x->deviation / (double)x->values;
    double vy = y->deviation * y->deviation / (double)y->values;
    double apart = fabs(x->mean - y->mean) - floor;
    double confidence = fmin(x->confidence, y->confidence);
    double df;

    if (apart <= 0)
        return false;
    if (vx + vy <= 0)
        return true;
    df = (vx + vy) * (vx + vy) / (vx * vx / (double)(x->values - 1) + vy * vy / (double)(y->values - 1));
    return apart / sqrt(vx + vy) > etch_student_quantile(confidence, df);
}

enum etch_skew_change etch_skew_compare(const struct etch_skew_bounds *before,
                                        const struct etch_skew_interval *before_mean,
                                        const struct etch_skew_bounds *after,
                                        const struct etch_skew_interval *after_mean, double floor)
{
    bool bounds = etch_skew_bounds_known(before) && etch_skew_bounds_known(after);
    bool means = before_mean->values > 1 && after_mean->values > 1;

    if (etch_skew_bounds_contradict(before) || etch_skew_bounds_contradict(after))
        return ETCH_SKEW_CHANGED;
    if (bounds && (before->hi <= after->lo || after->hi <= before->lo))
        return ETCH_SKEW_CHANGED;
    if (means && means_differ(before_mean, after_mean, floor))
        return ETCH_SKEW_SHIFTED;
    return bounds || means ? ETCH_SKEW_SAME : ETCH_SKEW_UNKNOWN;
}

enum etch_skew_change etch_skew_compare_paired(const double *before, const double *after, size_t n, double confidence,
                                               double floor, struct etch_skew_interval *change)
{
    double *differences = malloc((n ? n : 1) * sizeof(*differences));
    size_t kept = 0;
    int known;

    memset(change, 0, sizeof(*change));
    if (!differences)
        return ETCH_SKEW_UNKNOWN;
    for (size_t i = 0; i < n; i++)
        if (!isnan(before[i]) && !isnan(after[i]))
            differences[kept++] = after[i] - before[i];
    known = etch_skew_interval(differences, kept, confidence, change);
    free(differences);
    if (known < 0)
        return ETCH_SKEW_UNKNOWN;
    return change->lo > floor || change->hi < -floor ? ETCH_SKEW_SHIFTED : ETCH_SKEW_SAME;
}
