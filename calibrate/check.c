/* SPDX-License-Identifier: MIT */
/* Does an earlier measurement of the clocks still hold? See kept.h. */
#include "base/time.h"
#include "calibrate/kept.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK_PAIRS 5
#define CHECK_ROUNDS 400
#define CHECK_LINES 64
#define CPU_NS UINT64_C(2000000) /* for a race with one CPU, */
#define ALL_NS UINT64_C(5000000) /* and with all of them */

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

/* The cycles by which a pair at `ns` may be off the line: the line's error, growing with the distance. */
static double allowed(const struct etch_clock_fit *fit, const struct etch_clock_pair *pair)
{
    double away = (double)(int64_t)(pair->ns - fit->ns_zero), half = (double)fit->span_ns / 2;
    double error = (double)fit->error + (double)(pair->after - pair->before);

    return half > 0 && away > half ? error * away / half : error;
}

/* The kernel's clock now, against the line. The new pairs make the line longer, and so more exact. */
static int check_line(struct etch_calibration *c, struct etch_error *err)
{
    struct etch_clock_pair *pairs = realloc(c->pairs, (c->n_pairs + CHECK_PAIRS) * sizeof(*pairs));
    int64_t off;

    if (!pairs)
        return etch_error_no_memory(err);
    c->pairs = pairs;
    pairs += c->n_pairs;
    etch_clock_pairs_take(pairs, CHECK_PAIRS, CLOCK_MONOTONIC_RAW, 0);
    off = etch_clock_drift(&c->fit, pairs, CHECK_PAIRS);
    if (!((double)magnitude(off) <= allowed(&c->fit, &pairs[0])))
        return etch_error_set(err, "the kernel's clock is off its line by %lld cycles", (long long)off);
    c->drift = off;
    c->n_pairs_before = c->n_pairs;
    c->n_pairs += CHECK_PAIRS;
    return etch_clock_fit(c->pairs, c->n_pairs, &c->fit, err);
}

/* A race of the reference with one CPU: its bounds cannot be wrong either. */
static int check_cpu(struct etch_calibration *c, const struct etch_calibration_options *o,
                     const struct etch_calibration_cpu *cpu, const struct etch_race_lines *lines,
                     struct etch_error *err)
{
    struct etch_skew_round rounds[CHECK_ROUNDS];
    struct etch_skew_bounds now = ETCH_SKEW_BOUNDS_NONE;
    struct etch_race race = {.a = c->reference,
                             .b = cpu->cpu,
                             .a_error = o->errors && c->reference < o->n_errors ? o->errors[c->reference] : 0,
                             .b_error = o->errors && cpu->cpu < o->n_errors ? o->errors[cpu->cpu] : 0,
                             .deadline = etch_time_ns() + CPU_NS,
                             .lines = lines,
                             .per_line = 1};
    int64_t n = o->races ? o->races->write(o->races->context, &race, cpu->best, rounds, CHECK_ROUNDS, err)
                         : etch_race_write(&race, cpu->best, rounds, CHECK_ROUNDS, err);

    if (n < 0)
        return -1;
    for (int64_t i = 0; i < n; i++)
        etch_skew_bounds_add(&now, &rounds[i]);
    c->n_checked += n > 0;
    if (now.lo < cpu->bounds.hi && now.hi > cpu->bounds.lo && !etch_skew_bounds_contradict(&now))
        return 0;
    return etch_error_set(err, "the clock of CPU %u moved since it was measured", cpu->cpu);
}

/* A machine with many CPUs gets through some of them in that time, at each check others first. */
static int check_cpus(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_error *err)
{
    uint64_t until = etch_time_ns() + ALL_NS;
    size_t first = c->n_cpus ? (size_t)(c->pairs[c->n_pairs - 1].before >> 8) % c->n_cpus : 0;
    struct etch_race_lines lines;
    int status = 0;

    c->n_checked = 0;
    if (c->n_cpus == 0)
        return 0;
    if (etch_race_lines_new(&lines, CHECK_LINES, err) < 0)
        return -1;
    for (size_t i = 0; status == 0 && i < c->n_cpus && (i == 0 || etch_time_ns() < until); i++)
        status = check_cpu(c, o, &c->cpus[(first + i) % c->n_cpus], &lines, err);
    etch_race_lines_free(&lines);
    return status;
}

int etch_calibration_check(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_error *err)
{
    return check_line(c, err) < 0 ? -1 : check_cpus(c, o, err);
}
