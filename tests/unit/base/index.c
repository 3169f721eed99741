/* SPDX-License-Identifier: MIT */
#include "base/index.h"
#include "tests/unit/test.h"

static uint64_t hash_of(uint32_t i)
{
    return etch_hash(ETCH_HASH_START, &i, sizeof(i));
}

static void next_finds_each(void **state)
{
    struct etch_index index = {0};

    (void)state;
    for (uint32_t i = 0; i < 100000; i++)
        assert_true(etch_index_add(&index, hash_of(i), i));
    for (uint32_t i = 0; i < 100000; i++) {
        size_t probe = 0;

        assert_int_equal(etch_index_next(&index, hash_of(i), &probe), i);
        assert_int_equal(etch_index_next(&index, hash_of(i), &probe), ETCH_INDEX_NONE);
    }
    etch_index_release(&index);
}

static void next_keeps_order_of_equals(void **state)
{
    struct etch_index index = {0};
    size_t probe = 0;

    (void)state;
    for (uint32_t i = 0; i < 500; i++) { /* grows several times, and every chain crosses the end of the table */
        assert_true(etch_index_add(&index, UINT64_C(0xffffffff), i));
        assert_true(etch_index_add(&index, UINT64_C(0xfffffff0), 1000 + i));
    }
    for (uint32_t i = 0; i < 500; i++)
        assert_int_equal(etch_index_next(&index, UINT64_C(0xffffffff), &probe), i);
    assert_int_equal(etch_index_next(&index, UINT64_C(0xffffffff), &probe), ETCH_INDEX_NONE);
    etch_index_release(&index);
}

static void next_of_nothing(void **state)
{
    struct etch_index index = {0};
    size_t probe = 0;

    (void)state;
    assert_int_equal(etch_index_next(&index, 7, &probe), ETCH_INDEX_NONE);
    etch_index_release(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_finds_each),
        cmocka_unit_test(next_keeps_order_of_equals),
        cmocka_unit_test(next_of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
