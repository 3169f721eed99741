/* SPDX-License-Identifier: MIT */
/* base/bound: sizes as people write them, defaults, and the budget. */
#include "base/bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void has_defaults(void **state)
{
    (void)state;
    assert_true(etch_bound(ETCH_BOUND_MEMORY, 156 << 10) <= (uint64_t)256 << 20);
    assert_true(etch_bound(ETCH_BOUND_MEMORY, UINT64_MAX) < UINT64_MAX / 2); /* half of the machine's */
    assert_int_equal(etch_bound(ETCH_BOUND_UNPACKED, 1 << 20), ((uint64_t)4 << 30) + (1 << 30));
    assert_int_equal(etch_bound(ETCH_BOUND_OUTPUT, 0), (uint64_t)64 << 30);
}

static void takes_sizes(void **state)
{
    static const char *const bad[] = {"", "x", "-1", "0", "1X", "1MM", "99999999999999999999", "99999999999T"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(etch_bound_set(ETCH_BOUND_OUTPUT, bad[i]), -1);
    assert_int_equal(etch_bound_set(ETCH_BOUND_OUTPUT, "100000"), 0);
    assert_int_equal(etch_bound(ETCH_BOUND_OUTPUT, 0), 100000);
    assert_int_equal(etch_bound_set(ETCH_BOUND_OUTPUT, "3m"), 0);
    assert_int_equal(etch_bound(ETCH_BOUND_OUTPUT, 0), 3 << 20);
    setenv("ETCH_MAX_OUTPUT", "2G", 1);
    assert_null(etch_bound_set_by_environment());
    assert_int_equal(etch_bound(ETCH_BOUND_OUTPUT, 0), (uint64_t)2 << 30);
    setenv("ETCH_MAX_OUTPUT", "much", 1);
    assert_string_equal(etch_bound_set_by_environment(), "ETCH_MAX_OUTPUT");
    unsetenv("ETCH_MAX_OUTPUT");
}

static void keeps_to_the_budget(void **state)
{
    struct etch_budget budget = {0};

    (void)state;
    etch_bound_set(ETCH_BOUND_MEMORY, "1000");
    assert_true(etch_budget_take(&budget, 600, 0));
    assert_false(etch_budget_take(&budget, 401, 0));
    assert_false(etch_budget_take(&budget, UINT64_MAX, 0));
    assert_true(etch_budget_take(&budget, 400, 0));
    assert_int_equal(budget.used, 1000);
    assert_int_equal(budget.refused, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(takes_sizes),
        cmocka_unit_test(keeps_to_the_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
