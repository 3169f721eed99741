/* SPDX-License-Identifier: MIT */
#include "report/distribution.h"
#include "tests/unit/test.h"

static void bucket_holds_its_amounts(void **state)
{
    (void)state;
    for (uint64_t amount = 0; amount < 100000; amount++) {
        uint32_t bucket = etch_distribution_bucket(amount);

        assert_true(etch_distribution_least(bucket) <= amount);
        assert_true(etch_distribution_greatest(bucket) >= amount);
    }
    for (unsigned bit = 6; bit < 64; bit++) {
        uint64_t amount = UINT64_C(1) << bit;

        assert_int_equal(etch_distribution_bucket(amount), etch_distribution_bucket(amount - 1) + 1);
        assert_int_equal(etch_distribution_least(etch_distribution_bucket(amount)), amount);
    }
    assert_true(etch_distribution_greatest(etch_distribution_bucket(UINT64_MAX)) == UINT64_MAX);
}

static void quantile_holds_the_true_one(void **state)
{
    struct etch_distribution d = {0};

    (void)state;
    for (uint64_t i = 1; i <= 10000; i++) /* in an order that makes it grow at both ends */
        assert_true(etch_distribution_add(&d, i % 2 ? 5001 + i / 2 : 5001 - i / 2, 1));
    assert_int_equal(d.total, 10000);
    for (unsigned percent = 1; percent <= 100; percent++) {
        uint32_t bucket = etch_distribution_quantile(&d, percent / 100.0);

        assert_in_range(percent * 100, etch_distribution_least(bucket), etch_distribution_greatest(bucket));
    }
    etch_distribution_release(&d);
}

static void merge_adds(void **state)
{
    struct etch_distribution a = {0}, b = {0};

    (void)state;
    assert_true(etch_distribution_add(&a, 1000000, 3));
    assert_true(etch_distribution_add(&b, 2, 4));
    assert_true(etch_distribution_merge(&a, &b));
    assert_int_equal(a.total, 7);
    assert_int_equal(etch_distribution_between(&a, 2, 2), 4);
    assert_int_equal(etch_distribution_quantile(&a, 0.5), 2);
    etch_distribution_release(&a);
    etch_distribution_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_holds_its_amounts),
        cmocka_unit_test(quantile_holds_the_true_one),
        cmocka_unit_test(merge_adds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
