/* SPDX-License-Identifier: MIT */
/* The line through pairs of clock readings: made-up clocks, then this machine's. */
#include "calibrate/perfclock.h"
#include "tests/sim/sim.h"

#include <linux/perf_event.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define RATE 2.3

/* A pair of an even clock at `ns`, in a bracket of about `width`. */
static struct etch_clock_pair pair_at(struct sim_random *random, uint64_t ns, uint64_t width, double bend)
{
    uint64_t truth = 5000000000u + (uint64_t)llround((double)ns * RATE + bend);
    struct etch_clock_pair pair = {.ns = 77000000000u + ns};

    width += sim_below(random, width);
    pair.before = truth - sim_below(random, width);
    pair.after = pair.before + width;
    return pair;
}

static uint64_t truth_at(uint64_t ns)
{
    return 5000000000u + (uint64_t)llround((double)ns * RATE);
}

static void error_bounds_the_line(void **state)
{
    struct sim_random random = {.state = 5};

    (void)state;
    for (int clock = 0; clock < 2000; clock++) {
        struct etch_clock_pair pairs[40];
        struct etch_clock_fit fit;
        struct etch_error err;
        uint64_t span = (uint64_t)sim_between(&random, 1000, 1000000000);

        for (uint64_t i = 0; i < 40; i++) /* some are disturbed */
            pairs[i] = pair_at(&random, i * span, sim_chance(&random, 100) ? 100000 : 50, 0);
        assert_int_equal(etch_clock_fit(pairs, 40, &fit, &err), 0);
        assert_true(fit.error < 400);
        assert_int_equal(fit.uneven, fit.uneven > 200 ? 0 : fit.uneven);
        for (uint64_t k = 0; k < 39 * 4; k++) {
            uint64_t ns = k * span / 4;
            int64_t off = (int64_t)(etch_clock_convert(&fit, 77000000000u + ns) - truth_at(ns));

            assert_true((uint64_t)llabs(off) <= fit.error);
        }
    }
}

static void error_grows_with_a_bend(void **state)
{
    struct sim_random random = {.state = 6};
    struct etch_clock_pair pairs[20];
    struct etch_clock_fit fit, early;
    struct etch_error err;

    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        pairs[i] = pair_at(&random, i * 1000000, 50, i < 10 ? 0 : (double)(i - 10) * 1000);
    assert_int_equal(etch_clock_fit(pairs, 20, &fit, &err), 0);
    assert_true(fit.error > 1000 && fit.uneven > 1000);
    assert_int_equal(etch_clock_fit(pairs, 10, &early, &err), 0);
    assert_true(early.error < 400);
    assert_true(llabs(etch_clock_drift(&early, pairs + 19, 1) - 9000) < 400);
}

static void fit_refuses_what_is_no_line(void **state)
{
    struct etch_clock_pair same[3] = {{10, 20, 5}, {10, 20, 5}, {10, 20, 5}};
    struct etch_clock_fit fit;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_clock_fit(same, 0, &fit, &err), -1);
    assert_int_equal(etch_clock_fit(same, 1, &fit, &err), -1);
    assert_int_equal(etch_clock_fit(same, 3, &fit, &err), -1);
}

static void converts_as_the_kernel_header_says(void **state)
{
    struct etch_clock_offered offered = {.offered = true, .shift = 31, .mult = 933688543u, .zero = 1000};

    (void)state;
    assert_int_equal(etch_clock_offered_ns(&offered, 0), 1000);
    assert_true(fabs((double)(etch_clock_offered_ns(&offered, 23000000000u) - 1000) - 1e10) < 100);
    for (uint64_t tsc = 1; tsc < UINT64_MAX / 100; tsc = tsc * 3 + 1) /* and back, within the ns that it is cut to */
        assert_in_range(tsc - etch_clock_offered_tsc(&offered, etch_clock_offered_ns(&offered, tsc)), 0, 5);
}

/* A page as a kernel on bare metal fills it: 2.3 GHz, the clock began at TSC 5,000,000. */
static void takes_what_the_page_offers(void **state)
{
    struct perf_event_mmap_page page = {.lock = 6};
    struct etch_clock_offered offered;

    (void)state;
    page.time_shift = 31;
    page.time_mult = 933688543u; /* 2^31 / 2.3 */
    page.time_zero = 1000;
    etch_clock_offered_take(&offered, &page);
    assert_false(offered.offered); /* it does not say so */
    page.cap_user_time_zero = 1;
    etch_clock_offered_take(&offered, &page);
    assert_true(offered.offered);
    assert_int_equal(offered.mult, 933688543u);
    assert_int_equal(etch_clock_offered_ns(&offered, 0), 1000);
    page.time_shift = 64; /* nonsense */
    etch_clock_offered_take(&offered, &page);
    assert_false(offered.offered);
    page.time_shift = 63; /* the product needs more than 64 bits */
    page.time_mult = UINT32_MAX;
    etch_clock_offered_take(&offered, &page);
    assert_int_equal(etch_clock_offered_ns(&offered, INT64_MAX), UINT64_C(999) + UINT32_MAX);
}

/* The offered conversion against a scheduler clock that follows it, and one that is off. */
static void checks_the_offered_conversion(void **state)
{
    struct etch_clock_offered offered = {.offered = true, .shift = 31, .mult = 933688543u, .zero = 1000};
    struct sim_random random = {.state = 8};
    struct etch_clock_pair pairs[100];

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        pairs[i].before = 5000000000u + i * 1000003;
        pairs[i].after = pairs[i].before + 1000 + sim_below(&random, 40000);
        pairs[i].ns =
            etch_clock_offered_ns(&offered, pairs[i].before + sim_below(&random, pairs[i].after - pairs[i].before + 1));
    }
    assert_int_equal(etch_clock_offered_miss(&offered, pairs, 100), 0);
    pairs[40].ns = etch_clock_offered_ns(&offered, pairs[40].after) + 77;
    assert_int_equal(etch_clock_offered_miss(&offered, pairs, 100), 77);
    pairs[41].ns = etch_clock_offered_ns(&offered, pairs[41].before) - 99;
    assert_int_equal(etch_clock_offered_miss(&offered, pairs, 100), -99);
}

static void fits_this_machine(void **state)
{
    struct etch_clock_pair pairs[20];
    struct etch_clock_fit fit;
    struct etch_error err;

    (void)state;
    etch_clock_pairs_take(pairs, 20, CLOCK_MONOTONIC_RAW, 500000);
    assert_int_equal(etch_clock_fit(pairs, 20, &fit, &err), 0);
    assert_true(fit.tsc_per_ns > 0.1 && fit.tsc_per_ns < 20);
    print_message("%.6f cycles/ns within %lu cycles\n", fit.tsc_per_ns, (unsigned long)fit.error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_bounds_the_line),       cmocka_unit_test(error_grows_with_a_bend),
        cmocka_unit_test(fit_refuses_what_is_no_line), cmocka_unit_test(converts_as_the_kernel_header_says),
        cmocka_unit_test(takes_what_the_page_offers),  cmocka_unit_test(checks_the_offered_conversion),
        cmocka_unit_test(fits_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
