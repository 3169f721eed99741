/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "tests/unit/test.h"

static void push_keeps_order(void **state)
{
    ETCH_ARRAY(int) a = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_true(etch_array_push(&a, i * i));
    assert_int_equal(a.n, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(a.v[i], i * i);
    etch_array_free(&a);
    assert_null(a.v);
    assert_int_equal(a.n, 0);
}

static void reserve_makes_room_once(void **state)
{
    ETCH_ARRAY(uint64_t) a = {0};
    uint64_t *before;

    (void)state;
    assert_true(etch_array_reserve(&a, 100));
    before = a.v;
    for (uint64_t i = 0; i < 100; i++)
        assert_true(etch_array_push(&a, i));
    assert_ptr_equal(a.v, before);
    etch_array_free(&a);
}

static void grow_refuses_overflow(void **state)
{
    ETCH_ARRAY(uint64_t) a = {0};

    (void)state;
    assert_true(etch_array_push(&a, 7));
    assert_false(etch_array_reserve(&a, SIZE_MAX / 4));
    assert_false(etch_array_reserve(&a, SIZE_MAX));
    assert_int_equal(a.n, 1);
    assert_int_equal(a.v[0], 7);
    etch_array_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_keeps_order),
        cmocka_unit_test(reserve_makes_room_once),
        cmocka_unit_test(grow_refuses_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
