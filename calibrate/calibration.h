/* SPDX-License-Identifier: MIT */
/* The clocks of this machine, all of them, in bounded time: skew of each CPU against a reference CPU, the kernel's
 * clock against the TSC, the delays between an event and its stamp. Taken before and after a recording, and compared.
 */
#ifndef ETCH_CALIBRATE_CALIBRATION_H
#define ETCH_CALIBRATE_CALIBRATION_H

#include "base/error.h"
#include "calibrate/clock.h"
#include "calibrate/perfclock.h"
#include "calibrate/race.h"
#include "calibrate/skew.h"
#include "calibrate/trap.h"

struct etch_calibration;

#define ETCH_CALIBRATION_NS UINT64_C(2000000000) /* for all of it, unless asked otherwise */

/* The source of the rounds; see race.h. Tests have machines of their own, with CPUs 0 .. cpus - 1. */
struct etch_calibration_races {
    unsigned cpus;
    int64_t (*write)(void *context, const struct etch_race *race, enum etch_race_variant variant,
                     struct etch_skew_round *rounds, size_t want, struct etch_error *err);
    int64_t (*flag)(void *context, const struct etch_race *race, struct etch_race_difference *differences, size_t want,
                    struct etch_error *err);
    void *context;
};

struct etch_calibration_options {
    uint64_t budget_ns;    /* for all of it; 0: ETCH_CALIBRATION_NS. A shorter one is exceeded, up to five times and two
                              seconds at most, where the machine is too busy to find any bounds within it */
    double confidence;     /* of the statistics; 0: 0.99999 */
    unsigned checks;       /* pairs of other CPUs than the reference, tried at random */
    bool skip_trap;        /* trip no watchpoint */
    const int64_t *errors; /* by CPU number: added to its stamps, for tests; NULL: none */
    unsigned n_errors;
    const struct etch_calibration_races *races; /* NULL: this machine's */
    const char *root;                           /* where to read the clock's kind from, for tests; NULL: this machine */
    /* An earlier one, to be taken over the same lines, so that the two can be compared line by line; it must stay as
     * long as this one. NULL: none. */
    const struct etch_calibration *like;
};

struct etch_calibration_cpu {
    unsigned cpu;
    struct etch_skew_bounds bounds;
    struct etch_skew_bounds variants[ETCH_RACE_VARIANTS];
    enum etch_race_variant best;
    struct etch_skew_interval interval; /* values = 0: not measured */
    bool interval_outside; /* the statistics lie outside of the bounds: lines take longer one way than the other */
    double *estimates;     /* one per line, NAN where none */
    size_t n_estimates;
    uint64_t flag_rounds, dropped;
    uint64_t duration_ns;
};

/* Two CPUs neither of which is the reference. */
struct etch_calibration_check {
    unsigned a, b;
    struct etch_skew_bounds bounds;
    bool agrees; /* with what follows from the reference */
};

struct etch_calibration {
    struct etch_clock_health health;
    bool refused; /* CPUs must not be compared by this clock; `why` says why */
    char why[160];
    bool changed; /* a clock changed during each of the measurements */
    uint64_t tsc; /* at the start */
    unsigned reference;
    struct etch_calibration_cpu *cpus; /* all but the reference */
    size_t n_cpus;
    struct etch_calibration_check *checks;
    size_t n_checks;
    struct etch_clock_pair *pairs;   /* of CLOCK_MONOTONIC_RAW; of both phases after a recording */
    size_t n_pairs, n_pairs_before;  /* the first of them: from an earlier calibration */
    struct etch_clock_fit fit;       /* pairs = 0: none */
    int64_t drift;                   /* cycles from the line before to the pairs after */
    struct etch_clock_fit scheduler; /* perf's own clock, by tripped watchpoints; pairs = 0: none */
    struct etch_clock_offered offered;
    int64_t offered_differs_ns;    /* offered conversion against trapped samples, worst */
    struct etch_trap_latency trap; /* samples = 0: none */
    char trap_missing[160];        /* why there is none */
    uint64_t drain_lo, drain_hi;   /* cycles until a store is visible */
    uint64_t duration_ns;
    uint64_t budget_ns;                       /* that the measurement was given */
    bool kept;                                /* measured earlier and checked now (kept.h), or kept for later */
    uint64_t age_ns;                          /* since the measurement; 0: measured now */
    size_t n_checked;                         /* CPUs whose kept bounds were checked now */
    struct etch_race_difference *differences; /* of the first CPU, for the picture */
    size_t n_differences;
    struct etch_race_lines lines;        /* borrowed from `like` where there is one */
    const struct etch_calibration *like; /* the calibration before the recording; NULL: none */
};

/* Returns 0, or -1 with `err` set where nothing could be measured. A clock that may not be used is a result: `refused`.
 * If a clock changes during the measurement, the measurement is made again, up to two times. */
int etch_calibrate(struct etch_calibration *calibration, const struct etch_calibration_options *options,
                   struct etch_error *err);
void etch_calibration_free(struct etch_calibration *calibration);

/* Compares a CPU's clock in two calibrations; the second was made `like` the first. `change` gets the interval of the
 * shift, line by line, if there is one. */
enum etch_skew_change etch_calibration_compare(const struct etch_calibration *before,
                                               const struct etch_calibration *after, unsigned cpu, double floor,
                                               struct etch_skew_interval *change);

/* The range of b - a, from both CPUs' ranges against the reference. */
struct etch_skew_bounds etch_calibration_between(const struct etch_calibration *calibration, unsigned a, unsigned b);

#endif
