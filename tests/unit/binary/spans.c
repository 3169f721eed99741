/* SPDX-License-Identifier: MIT */
/* The innermost of nested ranges, also of ranges that overlap as they should not. */
#include "binary/spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t at(const struct etch_spans *spans, uint64_t address)
{
    uint64_t until;

    return etch_spans_find(spans, address, &until);
}

static void find_nothing_in_nothing(void **state)
{
    struct etch_spans spans = {0};

    (void)state;
    assert_true(etch_spans_make(&spans, NULL, 0));
    assert_int_equal(at(&spans, 0), ETCH_SPAN_NONE);
    etch_spans_release(&spans);
}

static void flatten_nested_ranges(void **state)
{
    struct etch_span_range ranges[] = {{10, 50, 0, 1}, {20, 30, 1, 2}, {20, 25, 2, 3}, {60, 70, 0, 4}, {65, 90, 1, 5}};
    static const struct {
        uint64_t address;
        uint32_t value;
        uint64_t until;
    } expected[] = {{9, ETCH_SPAN_NONE, 10},
                    {10, 1, 20},
                    {20, 3, 25},
                    {25, 2, 30},
                    {30, 1, 50},
                    {50, ETCH_SPAN_NONE, 60},
                    {60, 4, 65},
                    {69, 5, 70},
                    {70, ETCH_SPAN_NONE, UINT64_MAX}};
    struct etch_spans spans = {0};
    uint64_t until;

    (void)state;
    assert_true(etch_spans_make(&spans, ranges, 5));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(etch_spans_find(&spans, expected[i].address, &until), expected[i].value);
        assert_int_equal(until, expected[i].until);
    }
    etch_spans_release(&spans);
}

/* Such ranges come from damaged debug information. */
static void find_innermost_of_overlap(void **state)
{
    struct etch_span_range ranges[] = {{10, 30, 0, 1}, {20, 40, 1, 2}, {25, UINT64_MAX, 2, 3}, {27, 27, 3, 4}};
    struct etch_spans spans = {0};

    (void)state;
    assert_true(etch_spans_make(&spans, ranges, 4));
    assert_int_equal(at(&spans, 15), 1);
    assert_int_equal(at(&spans, 20), 2);
    assert_int_equal(at(&spans, 25), 3);
    assert_int_equal(at(&spans, 29), 3);
    assert_int_equal(at(&spans, 30), ETCH_SPAN_NONE);
    assert_int_equal(at(&spans, UINT64_MAX), ETCH_SPAN_NONE);
    etch_spans_release(&spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_nothing_in_nothing),
        cmocka_unit_test(flatten_nested_ranges),
        cmocka_unit_test(find_innermost_of_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
