/* SPDX-License-Identifier: MIT */
/* The skew between two clocks from rounds of stamps: d = TSC of CPU b - TSC of CPU a at one instant. Numbers in, ranges
 * out: the rounds come from race.h on a machine and from the simulator in tests. */
#ifndef ETCH_CALIBRATE_SKEW_H
#define ETCH_CALIBRATE_SKEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Scheme 1: bounds that cannot be wrong ---- */

/* Both CPUs wrote one variable; each write happened between its two stamps, by its own clock. */
struct etch_skew_round {
    uint64_t a_begin, a_end;
    uint64_t b_begin, b_end;
    bool b_second; /* whose write came second */
};

/* lo < d < hi. A disturbed round (interrupt, preemption) has its stamps far apart and narrows nothing, so slow rounds
 * need not be dropped. Only a round whose stamps are of other CPUs than a and b is no evidence. */
struct etch_skew_bounds {
    int64_t lo, hi;
    uint64_t rounds;
};

#define ETCH_SKEW_BOUNDS_NONE ((struct etch_skew_bounds){.lo = INT64_MIN, .hi = INT64_MAX})

void etch_skew_bounds_add(struct etch_skew_bounds *bounds, const struct etch_skew_round *round);

/* Both kinds of evidence are in, and they do not contradict each other. */
bool etch_skew_bounds_known(const struct etch_skew_bounds *bounds);

/* lo >= hi: the skew changed under the measurement. */
bool etch_skew_bounds_contradict(const struct etch_skew_bounds *bounds);

/* ---- Scheme 2: statistics ---- */

/* Splits stamp differences (b - a) at the middle between their two spikes, drops the differences far from their spike,
 * and returns the mean of the two groups' means. Sorts `differences`. Adds to `dropped`. NAN where there are too few,
 * or one spike only. */
double etch_skew_estimate(int64_t *differences, size_t n, size_t *dropped);

struct etch_skew_interval {
    double lo, hi; /* contains d at `confidence`, if lines take as long from a to b as from b to a in the mean */
    double mean, deviation;
    double confidence;
    size_t values;
};

/* The Student-t interval of the mean of n >= 2 independent estimates; estimates far off are left out, and not counted
 * in `values`. Returns 0, or -1 if there are fewer than two. */
int etch_skew_interval(const double *estimates, size_t n, double confidence, struct etch_skew_interval *interval);

/* ---- Before and after ---- */

enum etch_skew_change {
    ETCH_SKEW_UNKNOWN, /* not measured twice */
    ETCH_SKEW_SAME,    /* nothing says otherwise */
    ETCH_SKEW_SHIFTED, /* the statistics differ, at their confidence, by more than they wander by themselves */
    ETCH_SKEW_CHANGED, /* the bounds exclude each other: certain */
};

/* Compares two measurements of one pair. The bounds decide if they can; else Welch's test of the two means at the
 * smaller of the two confidences. `floor`: the cycles by which this machine's means wander while its clocks stay. */
enum etch_skew_change etch_skew_compare(const struct etch_skew_bounds *before,
                                        const struct etch_skew_interval *before_mean,
                                        const struct etch_skew_bounds *after,
                                        const struct etch_skew_interval *after_mean, double floor);

/* The same from paired estimates: before[i] and after[i] are from the same cache line. The error of each line cancels
 * out, so a change of one tick shows. NAN on either side leaves a pair out. `change` gets the interval of after -
 * before. */
enum etch_skew_change etch_skew_compare_paired(const double *before, const double *after, size_t n, double confidence,
                                               double floor, struct etch_skew_interval *change);

#endif
