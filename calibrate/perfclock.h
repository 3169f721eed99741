/* SPDX-License-Identifier: MIT */
/* The kernel's clocks against the TSC: a line through measured pairs, and the line's largest error. */
#ifndef ETCH_CALIBRATE_PERFCLOCK_H
#define ETCH_CALIBRATE_PERFCLOCK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's clock said `ns` at some moment between two stamps. */
struct etch_clock_pair {
    uint64_t before, after; /* TSC */
    uint64_t ns;
};

/* tsc = tsc_zero + (ns - ns_zero) * tsc_per_ns, within +- error cycles at every pair, and between them for a clock that
 * runs evenly. */
struct etch_clock_fit {
    uint64_t ns_zero, tsc_zero;
    double tsc_per_ns;
    uint64_t error;
    uint64_t span_ns; /* from the first pair to the last */
    size_t pairs, kept;
    uint64_t uneven; /* of `error`: cycles by which the pairs are off from any one line that was found; 0: the clock
                        runs evenly */
};

/* Takes n pairs of `clock` (CLOCK_MONOTONIC_RAW, which etch sets for perf events), `apart` ns from one to the next,
 * each the tightest of several tries. */
void etch_clock_pairs_take(struct etch_clock_pair *pairs, size_t n, int clock, uint64_t apart);

/* Returns 0, or -1 with `err` set where there are fewer than two pairs apart in time. */
int etch_clock_fit(const struct etch_clock_pair *pairs, size_t n, struct etch_clock_fit *fit, struct etch_error *err);

/* The cycles by which later pairs are off the line: the error at the end of a recording if the line was measured before
 * the recording only. */
int64_t etch_clock_drift(const struct etch_clock_fit *fit, const struct etch_clock_pair *later, size_t n);

/* ns as TSC by the line. */
uint64_t etch_clock_convert(const struct etch_clock_fit *fit, uint64_t ns);

/* The conversion that the kernel offers on perf's mmap page: tsc -> ns of its scheduler clock. */
struct etch_clock_offered {
    bool offered;
    uint16_t shift;
    uint32_t mult;
    uint64_t zero;
};

void etch_clock_offered_read(struct etch_clock_offered *offered);

/* The same from a page, which the kernel may be changing. */
struct perf_event_mmap_page;
void etch_clock_offered_take(struct etch_clock_offered *offered, const volatile struct perf_event_mmap_page *page);

/* ns of the scheduler clock for a TSC, as the kernel's header says to compute it. */
uint64_t etch_clock_offered_ns(const struct etch_clock_offered *offered, uint64_t tsc);

/* The way back. */
uint64_t etch_clock_offered_tsc(const struct etch_clock_offered *offered, uint64_t ns);

/* The cross-check: the largest error, in ns, of the offered conversion against the scheduler clock between a pair's
 * stamps. 0: no error can be seen. */
int64_t etch_clock_offered_miss(const struct etch_clock_offered *offered, const struct etch_clock_pair *pairs,
                                size_t n);

#endif
