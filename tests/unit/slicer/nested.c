/* SPDX-License-Identifier: MIT */
/* The innermost of ranges, also of ranges that overlap as they should not. */
#include "slicer/model/nested.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t at(const struct etch_nested *n, uint64_t address)
{
    uint32_t value;

    return etch_nested_find(n, address, &value) ? value : 0;
}

static void finds_nothing_in_nothing(void **state)
{
    struct etch_nested n = {0};

    (void)state;
    assert_true(etch_nested_flatten(&n));
    assert_int_equal(at(&n, 0), 0);
    etch_nested_release(&n);
}

static void finds_innermost(void **state)
{
    struct etch_nested n = {0};

    (void)state;
    assert_true(etch_nested_add(&n, 30, 40, 1, 3));
    assert_true(etch_nested_add(&n, 10, 100, 0, 1));
    assert_true(etch_nested_add(&n, 10, 20, 1, 2));
    assert_true(etch_nested_add(&n, 35, 40, 2, 4));
    assert_true(etch_nested_add(&n, 50, 50, 1, 9)); /* empty */
    assert_true(etch_nested_add(&n, 200, 210, 0, 5));
    assert_true(etch_nested_flatten(&n));
    assert_int_equal(at(&n, 9), 0);
    assert_int_equal(at(&n, 10), 2);
    assert_int_equal(at(&n, 19), 2);
    assert_int_equal(at(&n, 20), 1);
    assert_int_equal(at(&n, 30), 3);
    assert_int_equal(at(&n, 35), 4);
    assert_int_equal(at(&n, 39), 4);
    assert_int_equal(at(&n, 40), 1);
    assert_int_equal(at(&n, 50), 1);
    assert_int_equal(at(&n, 99), 1);
    assert_int_equal(at(&n, 100), 0);
    assert_int_equal(at(&n, 205), 5);
    assert_int_equal(at(&n, 210), 0);
    etch_nested_release(&n);
}

/* Debug information from a stranger. */
static void survives_overlap(void **state)
{
    struct etch_nested n = {0};

    (void)state;
    assert_true(etch_nested_add(&n, 10, 30, 0, 1));
    assert_true(etch_nested_add(&n, 20, 40, 1, 2));
    assert_true(etch_nested_add(&n, 25, UINT64_MAX, 2, 3));
    assert_true(etch_nested_flatten(&n));
    assert_int_equal(at(&n, 15), 1);
    assert_int_equal(at(&n, 20), 2);
    assert_int_equal(at(&n, 25), 3);
    assert_int_equal(at(&n, 1000), 3);
    assert_int_equal(at(&n, UINT64_MAX), 0);
    etch_nested_release(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_nothing_in_nothing),
        cmocka_unit_test(finds_innermost),
        cmocka_unit_test(survives_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
