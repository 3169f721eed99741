/* SPDX-License-Identifier: MIT */
#include "report/shift.h"
#include "tests/unit/test.h"

#include <math.h>
#include <stdint.h>

/* Numbers that look like measured times: most near one value, a few far beyond. */
static double noisy(uint64_t *seed)
{
    double u;

    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    u = ((double)(*seed >> 11) + 1) / 9007199254740994.0;
    return 100 - 2 * log(u) * (u < 0.05 ? 10 : 1);
}

static void constant_shift_is_exact(void **state)
{
    double a[10], b[10];
    struct etch_shift shift;

    (void)state;
    for (int i = 0; i < 10; i++) {
        a[i] = 500;
        b[i] = 505;
    }
    assert_int_equal(etch_shift(a, 10, b, 10, 0.001, &shift), 0);
    assert_true(shift.known && shift.by == 5 && shift.lo == 5 && shift.hi == 5);
}

/* 4 + 4 runs have 70 orders, so no interval of them misses with a chance of 1 in 1000. */
static void few_runs_are_not_known(void **state)
{
    const double a[] = {1, 2, 3, 4}, b[] = {11, 12, 13, 14};
    struct etch_shift shift;

    (void)state;
    assert_int_equal(etch_shift(a, 4, b, 4, 0.001, &shift), 0);
    assert_false(shift.known);
    assert_true(shift.by == 10);
    assert_int_equal(etch_shift(a, 4, b, 4, 0.05, &shift), 0);
    assert_true(shift.known && shift.lo == 7 && shift.hi == 13);
}

/* The published table of the rank sum test: 20 + 20 runs at 5 %, two-sided, reject up to U = 127. */
static void bounds_are_those_of_the_exact_test(void **state)
{
    double a[20], b[20], all[400];
    struct etch_shift shift;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        a[i] = pow(1.3, i);
        b[i] = -pow(1.7, i) / 3;
    }
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 20; k++)
            all[n++] = b[k] - a[i];
    assert_int_equal(etch_shift(a, 20, b, 20, 0.05, &shift), 0);
    n = 0;
    for (int i = 0; i < 400; i++)
        n += all[i] < shift.lo;
    assert_int_equal(n, 127);
}

static void interval_misses_as_rarely_as_it_says(void **state)
{
    unsigned missed = 0, trials = 4000;
    uint64_t seed = 1;

    (void)state;
    for (unsigned t = 0; t < trials; t++) {
        double a[8], b[8];
        struct etch_shift shift;

        for (int i = 0; i < 8; i++) {
            a[i] = noisy(&seed);
            b[i] = noisy(&seed) + 3;
        }
        assert_int_equal(etch_shift(a, 8, b, 8, 0.05, &shift), 0);
        assert_true(shift.known);
        missed += shift.lo > 3 || shift.hi < 3;
    }
    assert_in_range(missed, trials / 100, trials * 65 / 1000); /* 5 %, and four deviations of chance */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_shift_is_exact),
        cmocka_unit_test(few_runs_are_not_known),
        cmocka_unit_test(bounds_are_those_of_the_exact_test),
        cmocka_unit_test(interval_misses_as_rarely_as_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
