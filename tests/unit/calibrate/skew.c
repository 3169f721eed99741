/* SPDX-License-Identifier: MIT */
/* Skew from rounds: on simulated machines, where the truth is known, and with made-up numbers. */
#include "calibrate/skew.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PER_LINE 20
#define LINES 2000

static void add_bounds_from_one_round(void **state)
{
    struct etch_skew_bounds bounds = ETCH_SKEW_BOUNDS_NONE;
    struct etch_skew_round b_last = {.a_begin = 100, .a_end = 120, .b_begin = 1105, .b_end = 1140, .b_second = true};
    struct etch_skew_round a_last = {.a_begin = 200, .a_end = 220, .b_begin = 1195, .b_end = 1210, .b_second = false};

    (void)state;
    assert_false(etch_skew_bounds_known(&bounds));
    etch_skew_bounds_add(&bounds, &b_last);
    assert_false(etch_skew_bounds_known(&bounds));
    assert_int_equal(bounds.hi, 1040);
    etch_skew_bounds_add(&bounds, &a_last);
    assert_int_equal(bounds.lo, 975);
    assert_true(etch_skew_bounds_known(&bounds));
    /* The clock jumped: what was below is above. */
    a_last.b_begin += 500;
    a_last.b_end += 500;
    etch_skew_bounds_add(&bounds, &a_last);
    assert_true(etch_skew_bounds_contradict(&bounds));
    assert_false(etch_skew_bounds_known(&bounds));
}

/* 10,000 machines of 2 to 256 CPUs: neither a CPU's bounds nor what follows for two others ever exclude the truth. */
static void bounds_never_exclude_the_truth(void **state)
{
    struct sim_random random = {.state = 1};
    uint64_t pairs = 0, wrong = 0;
    double width = 0;

    (void)state;
    for (int machine = 0; machine < 10000; machine++) {
        uint32_t cpus = (uint32_t)sim_between(&random, 2, machine % 20 ? 12 : 256);
        int64_t limit = machine % 3 ? sim_between(&random, 0, 1000) : 1000000;
        int64_t skew[256] = {0};
        struct etch_skew_bounds bounds[256] = {{0}};

        for (uint32_t c = 1; c < cpus; c++) {
            skew[c] = sim_between(&random, -limit, limit);
            bounds[c] = ETCH_SKEW_BOUNDS_NONE;
            for (int round = 0; round < 60; round++) {
                struct etch_skew_round r = sim_write_round(&random, skew[c]);

                etch_skew_bounds_add(&bounds[c], &r);
            }
            wrong += bounds[c].lo > skew[c] || bounds[c].hi < skew[c];
            width += (double)(bounds[c].hi - bounds[c].lo);
            pairs++;
        }
        for (int i = 0; i < 4; i++) {
            uint32_t a = (uint32_t)sim_below(&random, cpus), b = (uint32_t)sim_below(&random, cpus);
            int64_t truth = skew[b] - skew[a];

            wrong += bounds[b].lo - bounds[a].hi > truth || bounds[b].hi - bounds[a].lo < truth;
        }
    }
    print_message("%" PRIu64 " CPUs, %" PRIu64 " wrong, mean width %.0f\n", pairs, wrong, width / (double)pairs);
    assert_int_equal(wrong, 0);
}

static void estimate_splits_two_spikes(void **state)
{
    int64_t d[40];
    size_t dropped = 0;

    (void)state;
    for (int i = 0; i < 40; i++)
        d[i] = i % 2 ? 300 + i % 3 : -340 + i % 3;
    d[7] = 90000;
    d[8] = -70000;
    assert_true(fabs(etch_skew_estimate(d, 40, &dropped) - -19) < 1);
    assert_int_equal(dropped, 2);
}

static void estimate_needs_both_spikes(void **state)
{
    int64_t one[20], few[4] = {1, 2, 3, 4};
    size_t dropped = 0;

    (void)state;
    for (int i = 0; i < 20; i++)
        one[i] = 5;
    assert_true(isnan(etch_skew_estimate(one, 20, &dropped)));
    assert_true(isnan(etch_skew_estimate(few, 4, &dropped)));
}

/* The line's own asymmetry stays the same as long as the line does. */
static void estimate_lines(struct sim_random *random, double skew, const double *asymmetry, double *estimates)
{
    for (int line = 0; line < LINES; line++) {
        int64_t d[PER_LINE];
        size_t dropped = 0;

        for (int i = 0; i < PER_LINE; i++)
            d[i] = sim_flag_round(random, skew, asymmetry[line], i % 2);
        estimates[line] = etch_skew_estimate(d, PER_LINE, &dropped);
    }
}

static void interval_contains_the_truth(void **state)
{
    struct sim_random random = {.state = 3};
    static double asymmetry[LINES], estimates[LINES];
    double widest = 0;

    (void)state;
    for (int machine = 0; machine < 100; machine++) {
        struct etch_skew_interval interval;
        double skew = (double)sim_between(&random, -1000000, 1000000);

        for (int i = 0; i < LINES; i++)
            asymmetry[i] = 10 * sim_normal(&random);
        estimate_lines(&random, skew, asymmetry, estimates);
        assert_int_equal(etch_skew_interval(estimates, LINES, 0.99999, &interval), 0);
        assert_true(interval.lo <= skew && skew <= interval.hi);
        widest = fmax(widest, interval.hi - interval.lo);
    }
    print_message("widest interval %.2f cycles\n", widest);
    assert_true(widest < 10);
}

/* A clock changed by so many ticks between two measurements: in how many of 50 machines it is seen. */
static unsigned seen_changes(int64_t ticks, double floor)
{
    struct sim_random random = {.state = 99};
    static double asymmetry[LINES], before[LINES], after[LINES];
    unsigned seen = 0;

    for (int machine = 0; machine < 50; machine++) {
        struct etch_skew_interval change;

        for (int i = 0; i < LINES; i++)
            asymmetry[i] = 20 * sim_normal(&random);
        estimate_lines(&random, 500, asymmetry, before);
        estimate_lines(&random, 500 + (double)ticks, asymmetry, after);
        seen += etch_skew_compare_paired(before, after, LINES, 0.99999, floor, &change) == ETCH_SKEW_SHIFTED;
    }
    return seen;
}

static void compare_sees_a_change_of_one_tick(void **state)
{
    (void)state;
    assert_int_equal(seen_changes(0, 0), 0);
    for (int64_t ticks = 1; ticks < 100; ticks *= 3) {
        assert_int_equal(seen_changes(ticks, 0), 50);
        assert_int_equal(seen_changes(-ticks, 0), 50);
    }
}

static void compare_is_certain_where_bounds_part(void **state)
{
    struct etch_skew_bounds x = {.lo = -100, .hi = 100, .rounds = 10}, y = {.lo = 100, .hi = 300, .rounds = 10};
    struct etch_skew_interval none = {0};

    (void)state;
    assert_int_equal(etch_skew_compare(&x, &none, &y, &none, 0), ETCH_SKEW_CHANGED);
    assert_int_equal(etch_skew_compare(&y, &none, &x, &none, 0), ETCH_SKEW_CHANGED);
    y.lo = 99;
    assert_int_equal(etch_skew_compare(&x, &none, &y, &none, 0), ETCH_SKEW_SAME);
    y = ETCH_SKEW_BOUNDS_NONE;
    assert_int_equal(etch_skew_compare(&x, &none, &y, &none, 0), ETCH_SKEW_UNKNOWN);
}

static void compare_of_means_by_welch(void **state)
{
    double x[] = {1.0, 1.1, 0.9, 1.05, 0.95, 1.0}, y[] = {3.0, 3.1, 2.9, 3.05, 2.95, 3.0};
    struct etch_skew_bounds none = ETCH_SKEW_BOUNDS_NONE;
    struct etch_skew_interval a, b;

    (void)state;
    etch_skew_interval(x, 6, 0.99999, &a);
    etch_skew_interval(y, 6, 0.99999, &b);
    assert_int_equal(etch_skew_compare(&none, &a, &none, &b, 0), ETCH_SKEW_SHIFTED);
    assert_int_equal(etch_skew_compare(&none, &a, &none, &b, 3), ETCH_SKEW_SAME);
    assert_int_equal(etch_skew_compare(&none, &a, &none, &a, 0), ETCH_SKEW_SAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_bounds_from_one_round),
        cmocka_unit_test(bounds_never_exclude_the_truth),
        cmocka_unit_test(estimate_splits_two_spikes),
        cmocka_unit_test(estimate_needs_both_spikes),
        cmocka_unit_test(interval_contains_the_truth),
        cmocka_unit_test(compare_sees_a_change_of_one_tick),
        cmocka_unit_test(compare_is_certain_where_bounds_part),
        cmocka_unit_test(compare_of_means_by_welch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
