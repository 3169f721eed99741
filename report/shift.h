/* SPDX-License-Identifier: MIT */
/* By how much one sample is greater than another, with an interval, without assumptions about the distributions:
 * the median of all differences of pairs (Hodges and Lehmann), and bounds from ranks. */
#ifndef ETCH_REPORT_SHIFT_H
#define ETCH_REPORT_SHIFT_H

#include <stdbool.h>
#include <stddef.h>

struct etch_shift {
    bool known;        /* there are enough runs for an interval at this confidence */
    double by, lo, hi; /* b minus a */
};

/* `risk`: the chance that the interval misses the true shift, at most, both sides together. Returns 0, or -1 when
 * memory is short. */
int etch_shift(const double *a, size_t n_a, const double *b, size_t n_b, double risk, struct etch_shift *shift);

double etch_median(const double *values, size_t n);

#endif
