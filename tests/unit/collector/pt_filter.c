/* SPDX-License-Identifier: MIT */
/* Ranges of code, and the few filters that a CPU has for them. */
#include "collector/pt/filter.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t join(struct etch_filter_ranges *r, size_t limit, const struct etch_filter_range *v, size_t n)
{
    r->list.n = 0;
    for (size_t i = 0; i < n; i++)
        assert_true(etch_array_push(&r->list, v[i]));
    return etch_ranges_join(r, limit);
}

static void join_what_touches(void **state)
{
    static const struct etch_filter_range v[] = {{0x30, 0x40}, {0x10, 0x20}, {0x20, 0x28}, {0x35, 0x38}, {0x3f, 0x50}};
    struct etch_filter_ranges r = {0};

    (void)state;
    assert_int_equal(join(&r, 4, v, 5), 0);
    assert_int_equal(r.list.n, 2);
    assert_true(r.list.v[0].start == 0x10 && r.list.v[0].end == 0x28);
    assert_true(r.list.v[1].start == 0x30 && r.list.v[1].end == 0x50);
    etch_array_free(&r.list);
}

static void join_the_nearest_when_too_many(void **state)
{
    static const struct etch_filter_range v[] = {
        {0x100, 0x110}, {0x114, 0x120}, {0x200, 0x210}, {0x220, 0x230}, {0x900, 0x910}};
    struct etch_filter_ranges r = {0};

    (void)state;
    assert_int_equal(join(&r, 3, v, 5), 4 + 16);
    assert_int_equal(r.list.n, 3);
    assert_true(r.list.v[0].end == 0x120 && r.list.v[1].start == 0x200 && r.list.v[1].end == 0x230);
    assert_int_equal(join(&r, 1, v, 5), 4 + 16 + (0x200 - 0x120) + (0x900 - 0x230));
    assert_true(r.list.n == 1 && r.list.v[0].start == 0x100 && r.list.v[0].end == 0x910);
    etch_array_free(&r.list);
}

/* Whatever is joined: no byte that was asked for is left out, nothing overlaps, and the count of bytes more is true. */
static void join_loses_nothing(void **state)
{
    struct etch_filter_ranges r = {0};

    (void)state;
    srand(7);
    for (unsigned round = 0; round < 500; round++) {
        struct etch_filter_range v[12];
        uint8_t asked[256] = {0};
        size_t limit = 1 + (size_t)rand() % 5, n = 1 + (size_t)rand() % 12;
        uint64_t more, extra = 0;

        for (size_t i = 0; i < n; i++) {
            v[i].start = (uint64_t)rand() % 240;
            v[i].end = v[i].start + 1 + (uint64_t)rand() % 15;
            memset(asked + v[i].start, 1, v[i].end - v[i].start);
        }
        more = join(&r, limit, v, n);
        assert_true(r.list.n <= limit);
        for (size_t i = 0; i < r.list.n; i++) {
            assert_true(i == 0 || r.list.v[i - 1].end < r.list.v[i].start);
            for (uint64_t a = r.list.v[i].start; a < r.list.v[i].end; a++) {
                extra += !asked[a];
                asked[a] = 0;
            }
        }
        for (size_t a = 0; a < sizeof(asked); a++)
            assert_int_equal(asked[a], 0);
        assert_int_equal(more, extra);
    }
    etch_array_free(&r.list);
}

static void parse(void **state)
{
    static const char *const wrong[] = {"0x10", "0x10-", "0x10-20", "0x20-0x10", "0x10-0x10", "0x10-0x20x", "main", ""};
    struct etch_filter_range range;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_range_parse(&range, "0x1140-0x1180", NULL, &err), 0);
    assert_true(range.start == 0x1140 && range.end == 0x1180);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(etch_range_parse(&range, wrong[i], NULL, &err), -1);
        assert_true(err.advice[0]);
    }
}

/* This test is a program too: its own main, by name, as the kernel wants it. */
static void write_for_a_function(void **state)
{
    struct etch_object *object;
    struct etch_filter_ranges r = {0};
    struct etch_filter_range range;
    struct etch_error err;
    char text[400], again[400];
    uint64_t offset;

    (void)state;
    assert_int_equal(etch_object_open(&object, "/proc/self/exe", &err), 0);
    assert_int_equal(etch_range_parse(&range, "main", object, &err), 0);
    assert_true(etch_object_offset(object, range.start, &offset));
    assert_true(etch_array_push(&r.list, range) && etch_array_push(&r.list, range));
    assert_int_equal(etch_pt_filter_write(text, sizeof(text), &r, object, "/bin/x", &err), 0);
    snprintf(again, sizeof(again), "filter 0x%llx/0x%llx@/bin/x,filter 0x%llx/0x%llx@/bin/x",
             (unsigned long long)offset, (unsigned long long)(range.end - range.start), (unsigned long long)offset,
             (unsigned long long)(range.end - range.start));
    assert_string_equal(text, again);
    assert_int_equal(etch_pt_filter_write(text, sizeof(text), &r, object, "/my program", &err), -1);
    assert_int_equal(etch_pt_filter_write(text, 20, &r, object, "/bin/x", &err), -1);
    r.list.v[1] = (struct etch_filter_range){1, 2};
    assert_int_equal(etch_pt_filter_write(text, sizeof(text), &r, object, "/bin/x", &err), -1);
    assert_int_equal(etch_range_parse(&range, "no such function", object, &err), -1);
    etch_array_free(&r.list);
    etch_object_free(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_what_touches),    cmocka_unit_test(join_the_nearest_when_too_many),
        cmocka_unit_test(join_loses_nothing),   cmocka_unit_test(parse),
        cmocka_unit_test(write_for_a_function),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
