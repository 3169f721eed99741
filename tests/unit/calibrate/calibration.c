/* SPDX-License-Identifier: MIT */
/* Calibration of this machine: a clock with a known error must come out with that error, and within its bounds. */
#include "calibrate/calibration.h"
#include "collector/clock_record.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void calibrate(struct etch_calibration *c, const struct etch_calibration_options *options)
{
    struct etch_error err;

    for (int tries = 0; tries < 8; tries++) { /* on a busy machine both CPUs may never be ours at once */
        if (etch_calibrate(c, options, &err) < 0)
            fail_msg("%s", err.what);
        if (c->n_cpus == 0) {
            print_message("one CPU only\n");
            exit(77);
        }
        if (etch_skew_bounds_known(&c->cpus[0].bounds) && c->cpus[0].interval.values > 100)
            return;
        if (tries < 7)
            etch_calibration_free(c);
    }
    print_message("too busy a machine: nothing was measured, and nothing is claimed\n");
    exit(77);
}

/* The bounds of an honest clock, moved by the error, and those of the clock with the error must overlap, since both
 * contain the truth. */
static void bounds_contain_an_injected_error(void **state)
{
    static const int64_t injected[] = {0, 1, -1, 150, -1000, 12345, -1000000};
    struct etch_calibration_options options = {.budget_ns = 800000000, .skip_trap = true};
    struct etch_calibration honest;

    (void)state;
    calibrate(&honest, &options);
    for (size_t i = 0; i < sizeof(injected) / sizeof(injected[0]); i++) {
        unsigned cpu = honest.cpus[0].cpu;
        int64_t errors[4096] = {0};
        struct etch_calibration c;
        const struct etch_skew_bounds *b;

        errors[cpu] = injected[i];
        options.errors = errors;
        options.n_errors = 4096;
        calibrate(&c, &options);
        b = &c.cpus[0].bounds;
        assert_true(b->lo < honest.cpus[0].bounds.hi + injected[i]);
        assert_true(b->hi > honest.cpus[0].bounds.lo + injected[i]);
        print_message("%+" PRId64 ": %" PRId64 "..%" PRId64 ", mean %.1f\n", injected[i], b->lo, b->hi,
                      c.cpus[0].interval.mean);
        etch_calibration_free(&c);
    }
    etch_calibration_free(&honest);
}

static void compare_sees_an_injected_change(void **state)
{
    struct etch_calibration_options options = {.budget_ns = 800000000, .skip_trap = true};
    struct etch_calibration before, after;
    struct etch_skew_interval change;
    int64_t errors[4096] = {0};

    (void)state;
    calibrate(&before, &options);
    options.like = &before;
    options.errors = errors;
    options.n_errors = 4096;
    errors[before.cpus[0].cpu] = 100000;
    calibrate(&after, &options);
    assert_int_equal(etch_calibration_compare(&before, &after, before.cpus[0].cpu, 0, &change), ETCH_SKEW_CHANGED);
    etch_calibration_free(&after);
    errors[before.cpus[0].cpu] = 0;
    calibrate(&after, &options);
    assert_int_not_equal(etch_calibration_compare(&before, &after, before.cpus[0].cpu, 0, &change), ETCH_SKEW_CHANGED);
    print_message("moved by %.2f..%.2f cycles while nothing was changed\n", change.lo, change.hi);
    assert_int_equal(etch_calibration_compare(&before, &after, 4095, 0, &change), ETCH_SKEW_UNKNOWN);
    etch_calibration_free(&after);
    etch_calibration_free(&before);
}

static void stays_within_its_time(void **state)
{
    struct etch_calibration_options options = {.budget_ns = 400000000};
    struct etch_calibration c;

    (void)state;
    calibrate(&c, &options);
    print_message("%.2f s for %zu CPUs\n", (double)c.duration_ns / 1e9, c.n_cpus + 1);
    /* On a loaded machine races end late by some time slices; without an end they would go on for ever. */
    assert_true(c.duration_ns < 30000000000u);
    etch_calibration_free(&c);
}

static void refuses_a_clock_that_changes_speed(void **state)
{
    char root[] = P_tmpdir "/etch-clock-XXXXXX", path[128];
    struct etch_calibration_options options = {.budget_ns = 400000000, .skip_trap = true, .root = root};
    struct etch_calibration c;
    Etch__Clock *record;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/proc", root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("flags\t\t: fpu tsc rdtscp nonstop_tsc\n", file);
    fclose(file);
    calibrate(&c, &options);
    assert_true(c.refused);
    assert_non_null(strstr(c.why, "not constant"));
    record = etch_clock_record(&c, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
    assert_non_null(record);
    assert_false(record->constant);
    etch__clock__free_unpacked(record, NULL);
    etch_calibration_free(&c);
    unlink(path);
    snprintf(path, sizeof(path), "%s/proc", root);
    rmdir(path);
    rmdir(root);
}

static void record_has_what_was_measured(void **state)
{
    struct etch_calibration_options options = {.budget_ns = 400000000, .skip_trap = true};
    struct etch_calibration c;
    Etch__Clock *record;

    (void)state;
    calibrate(&c, &options);
    record = etch_clock_record(&c, ETCH__CLOCK_PHASE__CLOCK_AFTER);
    assert_non_null(record);
    assert_int_equal(record->phase, ETCH__CLOCK_PHASE__CLOCK_AFTER);
    assert_in_range(record->n_skews, 1, 2 * c.n_cpus);
    assert_int_equal(record->skews[0]->method, ETCH__SKEW_METHOD__SKEW_BOUNDS);
    assert_int_equal(record->skews[0]->lo, c.cpus[0].bounds.lo);
    assert_int_equal(record->skews[0]->hi, c.cpus[0].bounds.hi);
    assert_int_equal(record->perf_clock->error_cycles, c.fit.error);
    etch__clock__free_unpacked(record, NULL);
    etch_calibration_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_contain_an_injected_error),
        cmocka_unit_test(compare_sees_an_injected_change),
        cmocka_unit_test(stays_within_its_time),
        cmocka_unit_test(refuses_a_clock_that_changes_speed),
        cmocka_unit_test(record_has_what_was_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
