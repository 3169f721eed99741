/* SPDX-License-Identifier: MIT */
/* How many runs make sure that a failure is gone. */
#include "diagnose/sure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void runs_grow_as_the_failure_gets_rare(void **state)
{
    uint64_t often = etch_sure_runs(30, 60, 0.95), seldom = etch_sure_runs(2, 60, 0.95);

    (void)state;
    assert_true(often >= 5 && often <= 7); /* a rate of 0.38 at least */
    assert_true(seldom > 200);
    assert_true(etch_sure_runs(30, 60, 0.99) > often);
    assert_int_equal(etch_sure_runs(0, 60, 0.95), 0);
}

static void rate_falls_with_the_runs(void **state)
{
    (void)state;
    assert_true(etch_sure_rate(300, 0.95) > 0.0098 && etch_sure_rate(300, 0.95) < 0.0101); /* 3 / 300 */
    assert_true(etch_sure_rate(300, 0.99) > etch_sure_rate(300, 0.95));
    assert_true(etch_sure_rate(0, 0.95) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_grow_as_the_failure_gets_rare),
        cmocka_unit_test(rate_falls_with_the_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
