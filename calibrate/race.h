/* SPDX-License-Identifier: MIT */
/* Rounds between two CPUs of this machine: two threads, each pinned to one CPU, race for a cache line and take
 * stamps. */
#ifndef ETCH_CALIBRATE_RACE_H
#define ETCH_CALIBRATE_RACE_H

#include "base/error.h"
#include "calibrate/skew.h"

#include <stdint.h>

/* How the write of scheme 1 is held between its two stamps. Which is tightest depends on the CPU; cpuid leaves a guest.
 */
enum etch_race_variant {
    ETCH_RACE_FENCE,   /* store; mfence; lfence; rdtsc */
    ETCH_RACE_LOCKED,  /* store; a locked instruction elsewhere; lfence; rdtsc */
    ETCH_RACE_CPUID,   /* store; cpuid; rdtsc */
    ETCH_RACE_XCHG,    /* xchg; lfence; rdtsc */
    ETCH_RACE_CMPXCHG, /* lock cmpxchg; lfence; rdtsc: only the first writer succeeds */
    ETCH_RACE_VARIANTS,
};

const char *etch_race_variant_name(enum etch_race_variant variant);

/* Many cache lines to race for. The two directions of a transfer take different times, depending on the home of the
 * line in the machine. A single line would shift the mean of scheme 2 by tens of cycles. */
struct etch_race_lines {
    void *memory;
    size_t n;
};

/* Returns 0, or -1 with `err` set. */
int etch_race_lines_new(struct etch_race_lines *lines, size_t n, struct etch_error *err);
void etch_race_lines_free(struct etch_race_lines *lines);

struct etch_race {
    unsigned a, b;   /* the CPUs */
    int64_t a_error; /* added to every stamp of a and of b: a clock with a known error, for tests */
    int64_t b_error;
    uint64_t deadline; /* ns of CLOCK_MONOTONIC after which the threads give up */
    const struct etch_race_lines *lines;
    size_t per_line; /* rounds on one line before it is the next one's turn; etch_race_write() wants 1 and two lines or
                        more */
};

/* Up to `want` rounds of scheme 1; `rounds` gets each that is evidence. Returns how many there were, or -1 with `err`
 * set. */
int64_t etch_race_write(const struct etch_race *race, enum etch_race_variant variant, struct etch_skew_round *rounds,
                        size_t want, struct etch_error *err);

struct etch_race_difference {
    int64_t cycles; /* stamp of b - stamp of a */
    uint32_t line;
};

/* Up to `want` rounds of scheme 2, the CPUs taking turns as the one that sets the flag, so that two are enough. Samples
 * hit by a migration are left out. As above. */
int64_t etch_race_flag(const struct etch_race *race, struct etch_race_difference *differences, size_t want,
                       struct etch_error *err);

/* How long a plain store may stay in the store buffer: `waits` gets the cycles from the stamp that follows a store to a
 * contended line until the buffer has drained, on CPU b, while a takes the line away. As above. */
int64_t etch_race_drain(const struct etch_race *race, uint64_t *waits, size_t want, struct etch_error *err);

#endif
