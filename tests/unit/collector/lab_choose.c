/* SPDX-License-Identifier: MIT */
#include "collector/lab/choose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct etch_lab_event event(uint32_t thread, uint64_t site, uint64_t object, bool write)
{
    return (struct etch_lab_event){.thread = thread, .site = site, .object = object, .write = write};
}

/* Object 100 is shared; 200 is only read; 300 has one thread. */
static void draw_shared(void **state)
{
    const struct etch_lab_event events[] = {
        event(0, 1, 100, true),  event(1, 2, 100, false), event(1, 2, 100, false), event(0, 3, 200, false),
        event(1, 4, 200, false), event(0, 5, 300, true),  event(0, 1, 300, true),
    };
    uint64_t sites[ETCH_LAB_CHOSEN], expected[ETCH_LAB_THREADS] = {9, 9, 9};

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        assert_int_equal(etch_lab_choose(events, 7, seed, 1, sites, expected), 2);
        assert_int_equal(sites[0], 1);
        assert_int_equal(sites[1], 2);
        assert_int_equal(expected[0], 2);
        assert_int_equal(expected[1], 2);
        assert_int_equal(expected[2], 0);
    }
}

static void draw_all_in_turn(void **state)
{
    struct etch_lab_event events[16];
    uint64_t sites[ETCH_LAB_CHOSEN], expected[ETCH_LAB_THREADS];
    unsigned seen[8] = {0};

    (void)state;
    for (uint32_t i = 0; i < 16; i++)
        events[i] = event(i % 2, i / 2 + 1, 1000 + 8 * (i / 2), true);
    for (uint64_t seed = 0; seed < 800; seed++) {
        assert_int_equal(etch_lab_choose(events, 16, seed, 1, sites, expected), 1);
        seen[sites[0] - 1]++;
    }
    for (unsigned i = 0; i < 8; i++)
        assert_in_range(seen[i], 60, 140);
}

/* Object 100 is used under a lock, 200 by nobody at the same time: the lock and 400 remain. */
static void draw_unprotected(void **state)
{
    struct etch_lab_event events[] = {
        event(0, 1, 100, true), event(1, 2, 100, true), event(0, 3, 200, true), event(1, 4, 200, true),
        event(0, 5, 300, true), event(1, 5, 300, true), event(0, 6, 400, true), event(1, 7, 400, false),
    };
    uint64_t sites[ETCH_LAB_CHOSEN], expected[ETCH_LAB_THREADS];
    unsigned locks = 0, others = 0;

    (void)state;
    events[0].locks = events[1].locks = 2;
    events[3].alone = true;
    events[4].sync = events[5].sync = true;
    events[4].locks = events[5].locks = 2;
    for (uint64_t seed = 0; seed < 100; seed++) {
        uint32_t n = etch_lab_choose(events, 8, seed, 1, sites, expected);

        locks += n == 1 && sites[0] == 5;
        others += n == 2 && sites[0] == 6;
        assert_int_equal(etch_lab_choose(events, 8, seed, 2, sites, expected), 3);
        assert_int_equal(expected[0], 2);
    }
    assert_int_equal(locks + others, 100);
    assert_in_range(locks, 30, 70);
}

/* Many cells of a table count as one object. */
static void draw_by_kind(void **state)
{
    struct etch_lab_event events[22];
    uint64_t sites[ETCH_LAB_CHOSEN], expected[ETCH_LAB_THREADS];
    unsigned tables = 0;

    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        events[i] = event(i % 2, 1, 1000 + 8 * (i / 2), true);
    events[20] = event(0, 2, 96, true);
    events[21] = event(1, 2, 96, true);
    for (uint64_t seed = 0; seed < 200; seed++)
        tables += etch_lab_choose(events, 22, seed, 1, sites, expected) == 1 && sites[0] == 1;
    assert_in_range(tables, 70, 130);
}

static void draw_none(void **state)
{
    const struct etch_lab_event events[] = {event(0, 1, 100, true), event(0, 2, 0, true), event(1, 3, 0, true)};
    uint64_t sites[ETCH_LAB_CHOSEN], expected[ETCH_LAB_THREADS] = {7};

    (void)state;
    assert_int_equal(etch_lab_choose(events, 3, 1, 1, sites, expected), 0);
    assert_int_equal(etch_lab_choose(NULL, 0, 1, 1, sites, expected), 0);
    assert_int_equal(expected[0], 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draw_shared),  cmocka_unit_test(draw_all_in_turn), cmocka_unit_test(draw_unprotected),
        cmocka_unit_test(draw_by_kind), cmocka_unit_test(draw_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
