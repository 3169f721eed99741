/* SPDX-License-Identifier: MIT */
/* The clocks of a native recording: their records, and the kernel's time as a TSC; see native.h. */
#include "collector/native/native.h"

#include "calibrate/clock.h"
#include "collector/clock_record.h"

#include <time.h>
#include <x86intrin.h>

/* Without a calibration: health, and the kernel's clock by the two pairs at the ends. */
static void write_plain_clock(struct native *n, Etch__ClockPhase phase)
{
    Etch__Clock clock = ETCH__CLOCK__INIT;
    Etch__PerfClock perf = ETCH__PERF_CLOCK__INIT;
    struct etch_clock_health health;
    struct etch_clock_pair pairs[2] = {n->first_pair};
    struct etch_clock_fit fit;
    struct etch_error ignored;

    etch_clock_health_read(&health, "");
    clock.phase = phase;
    clock.tsc = __rdtsc();
    clock.constant = health.constant;
    clock.nonstop = health.nonstop;
    etch_clock_pairs_take(&pairs[1], 1, CLOCK_MONOTONIC_RAW, 0);
    if (phase == ETCH__CLOCK_PHASE__CLOCK_AFTER && etch_clock_fit(pairs, 2, &fit, &ignored) == 0) {
        perf.ns_zero = fit.ns_zero;
        perf.tsc_zero = fit.tsc_zero;
        perf.tsc_per_ns = fit.tsc_per_ns;
        perf.error_cycles = fit.error;
        perf.span_ns = fit.span_ns;
        clock.perf_clock = &perf;
    }
    etch_recorder_write(&n->recorder, ETCH__RECORD__BODY_CLOCK, &clock);
}

/* Notes the reasons why events of different CPUs are not ordered. */
static void note_clocks(struct native *n, const struct etch_calibration *after)
{
    struct etch_skew_interval change;

    if (after->refused)
        etch_recorder_note(&n->recorder, "events are not ordered across CPUs by their clocks: %s", after->why);
    for (size_t i = 0; i < after->n_cpus; i++)
        if (etch_calibration_compare(&n->calibration, after, after->cpus[i].cpu, 0, &change) == ETCH_SKEW_CHANGED)
            etch_recorder_note(&n->recorder,
                               "the clock of CPU %u was changed during the run: its events are not ordered by it",
                               after->cpus[i].cpu);
}

void etch_native_write_clock(struct native *n, Etch__ClockPhase phase)
{
    bool before = phase == ETCH__CLOCK_PHASE__CLOCK_BEFORE;
    struct etch_calibration after = {0};
    struct etch_calibration *calibration = before ? &n->calibration : &after;
    uint64_t budget_ns = (uint64_t)(n->options->clock_s * 1e9);
    Etch__Clock *measured = NULL;

    if (before && n->options->clock) { /* as measured before */
        etch_recorder_write(&n->recorder, ETCH__RECORD__BODY_CLOCK, (void *)(uintptr_t)n->options->clock);
        return;
    }
    if (budget_ns && (before || n->calibrated))
        measured = etch_clock_measure(calibration, before ? NULL : &n->calibration, budget_ns, n->n_list == 0,
                                      n->options->clock_fresh);
    if (before)
        n->calibrated = measured != NULL;
    else if (measured)
        note_clocks(n, &after);
    if (measured)
        etch_recorder_write(&n->recorder, ETCH__RECORD__BODY_CLOCK, measured);
    else
        write_plain_clock(n, phase);
    if (measured)
        etch__clock__free_unpacked(measured, NULL);
    etch_calibration_free(&after); /* borrows from n->calibration, which is freed last */
}

/* By the line from the first pair to the latest, between which the event lies: as exact as the pairs. */
uint64_t etch_native_tsc(const struct native *n, uint64_t ns)
{
    uint64_t first = n->first_pair.before + (n->first_pair.after - n->first_pair.before) / 2;
    uint64_t last = n->pair.before + (n->pair.after - n->pair.before) / 2;
    double rate;

    if (n->pair.ns <= n->first_pair.ns)
        return last;
    rate = (double)(last - first) / (double)(n->pair.ns - n->first_pair.ns);
    return first + (uint64_t)(int64_t)((double)(int64_t)(ns - n->first_pair.ns) * rate);
}
