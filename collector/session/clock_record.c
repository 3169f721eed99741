/* SPDX-License-Identifier: MIT */
/* Calibration to record; see clock_record.h. */
#include "collector/clock_record.h"
#include "calibrate/kept.h"

#include <math.h>
#include <stdlib.h>

static bool add_skew(Etch__Clock *clock, Etch__Skew skew)
{
    Etch__Skew *copy = malloc(sizeof(*copy));

    if (!copy)
        return false;
    *copy = skew;
    clock->skews[clock->n_skews++] = copy;
    return true;
}

/* Sets the change of the skew since the calibration before, if both calibrations can be compared line by line. */
static void set_moved(Etch__Skew *skew, const struct etch_calibration *c)
{
    struct etch_skew_interval change;

    if (!c->like)
        return;
    etch_calibration_compare(c->like, c, skew->cpu, 0, &change);
    if (change.values < 2)
        return;
    skew->moved_lo = change.lo;
    skew->moved_hi = change.hi;
}

static bool add_cpu(Etch__Clock *clock, const struct etch_calibration *c, const struct etch_calibration_cpu *cpu)
{
    Etch__Skew skew = ETCH__SKEW__INIT;

    skew.cpu = cpu->cpu;
    if (etch_skew_bounds_known(&cpu->bounds)) {
        skew.method = ETCH__SKEW_METHOD__SKEW_BOUNDS;
        skew.lo = cpu->bounds.lo;
        skew.hi = cpu->bounds.hi;
        skew.confidence = 1;
        skew.rounds = cpu->bounds.rounds;
        if (!add_skew(clock, skew))
            return false;
    }
    if (cpu->interval.values > 1 && !cpu->interval_outside) {
        skew.method = ETCH__SKEW_METHOD__SKEW_STATISTICS;
        skew.lo = (int64_t)floor(cpu->interval.lo);
        skew.hi = (int64_t)ceil(cpu->interval.hi);
        skew.confidence = cpu->interval.confidence;
        skew.rounds = cpu->flag_rounds;
        set_moved(&skew, c);
        return add_skew(clock, skew);
    }
    return true;
}

static bool add_perf_clock(Etch__Clock *clock, const struct etch_calibration *c)
{
    Etch__PerfClock *perf = malloc(sizeof(*perf));

    if (!perf)
        return false;
    etch__perf_clock__init(perf);
    perf->offered = c->offered.offered;
    perf->ns_zero = c->fit.ns_zero;
    perf->tsc_zero = c->fit.tsc_zero;
    perf->tsc_per_ns = c->fit.tsc_per_ns;
    perf->error_cycles = c->fit.error;
    perf->span_ns = c->fit.span_ns;
    perf->time_shift = c->offered.shift;
    perf->time_mult = c->offered.mult;
    perf->time_zero = c->offered.zero;
    clock->perf_clock = perf;
    return true;
}

Etch__Clock *etch_clock_record(const struct etch_calibration *c, Etch__ClockPhase phase)
{
    Etch__Clock *clock = malloc(sizeof(*clock));
    bool good;

    if (!clock)
        return NULL;
    etch__clock__init(clock);
    clock->phase = phase;
    clock->tsc = c->tsc;
    /* A clock that was refused for another reason than its kind is not to be used either. */
    clock->constant = c->health.constant && !(c->refused && etch_clock_orders(&c->health));
    clock->nonstop = c->health.nonstop;
    clock->reference_cpu = c->reference;
    clock->trap_latency_lo = c->trap.lo;
    clock->trap_latency_hi = c->trap.hi;
    clock->duration_ns = c->duration_ns;
    clock->age_ns = c->age_ns;
    clock->skews = malloc((2 * c->n_cpus + 1) * sizeof(*clock->skews));
    good = clock->skews != NULL;
    for (size_t i = 0; good && i < c->n_cpus; i++)
        good = add_cpu(clock, c, &c->cpus[i]);
    if (good && c->fit.pairs)
        good = add_perf_clock(clock, c);
    if (good)
        return clock;
    etch__clock__free_unpacked(clock, NULL);
    return NULL; /* NOLINT(clang-analyzer-unix.Malloc): protobuf-c has just freed it */
}

Etch__Clock *etch_clock_measure(struct etch_calibration *calibration, const struct etch_calibration *first,
                                uint64_t budget_ns, bool skip_trap, bool fresh)
{
    struct etch_calibration_options options = {.budget_ns = budget_ns, .skip_trap = skip_trap, .like = first};
    struct etch_error ignored;

    if ((fresh ? etch_calibrate : etch_calibrate_kept)(calibration, &options, &ignored) < 0)
        return NULL;
    return etch_clock_record(calibration, first ? ETCH__CLOCK_PHASE__CLOCK_AFTER : ETCH__CLOCK_PHASE__CLOCK_BEFORE);
}
