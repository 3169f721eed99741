/* SPDX-License-Identifier: MIT */
/* The orders of a failing run that are worth an experiment. */
#include "diagnose/orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N(a) (uint32_t)(sizeof(a) / sizeof((a)[0]))

static struct etch_lab_event read_of(uint32_t thread, uint64_t site, uint64_t object)
{
    return (struct etch_lab_event){.site = site, .object = object, .thread = thread, .visit = 1};
}

static struct etch_lab_event write_of(uint32_t thread, uint64_t site, uint64_t object)
{
    struct etch_lab_event e = read_of(thread, site, object);

    e.write = true;
    return e;
}

static struct etch_lab_event lock_of(uint32_t thread, uint64_t site, uint64_t object)
{
    struct etch_lab_event e = write_of(thread, site, object);

    e.sync = true;
    return e;
}

static struct etch_lab_event release_of(uint32_t thread, uint64_t site, uint64_t object)
{
    struct etch_lab_event e = lock_of(thread, site, object);

    e.release = true;
    return e;
}

static bool is_listed(const struct etch_lab_order *v, uint32_t n, uint64_t before, uint64_t after)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].before.site == before && v[i].after.site == after)
            return true;
    return false;
}

/* Two variables of four bytes in one unit of eight. */
static void conflicts_compares_bytes(void **state)
{
    struct etch_lab_event low = write_of(0, 10, 64), high = read_of(1, 20, 64);

    (void)state;
    assert_true(etch_event_conflicts(&low, &high)); /* the bytes are not known */
    low.address = 64;
    low.bytes = high.bytes = 4;
    high.address = 68;
    assert_false(etch_event_conflicts(&low, &high));
    assert_false(etch_event_overlaps(&high, &low));
    high.address = 67;
    assert_true(etch_event_conflicts(&low, &high));
    low.bytes = 100;
    high.object = high.address = 160; /* a copy reaches beyond its first unit */
    assert_true(etch_event_conflicts(&low, &high));
}

/* A check, a write by another thread, and the use. */
static void list_has_each_conflict(void **state)
{
    const struct etch_lab_event run[] = {read_of(1, 10, 64), write_of(0, 20, 64), read_of(1, 30, 64)};
    struct etch_lab_order v[ETCH_ORDERS_MAX];
    uint32_t n = etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0});

    (void)state;
    assert_int_equal(n, 2);
    assert_int_equal(v[0].before.site, 20); /* the last before the failure comes first */
    assert_int_equal(v[0].after.site, 30);
    assert_true(is_listed(v, n, 10, 20));
    assert_int_equal(v[0].at_before, 1);
    assert_int_equal(v[0].at_after, 2);
}

static void list_leaves_out_reads_and_other_memory(void **state)
{
    const struct etch_lab_event run[] = {read_of(1, 10, 64), read_of(0, 20, 64), write_of(0, 30, 72),
                                         write_of(0, 40, 64), write_of(0, 50, 64)};
    struct etch_lab_order v[ETCH_ORDERS_MAX];
    uint32_t n = etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0});

    (void)state;
    assert_int_equal(n, 2);
    assert_true(is_listed(v, n, 10, 40));
    assert_true(is_listed(v, n, 10, 50));
}

static void conflict_of_a_freed_block(void **state)
{
    struct etch_lab_event freed = write_of(0, 10, 64), use = read_of(1, 20, 96);

    (void)state;
    assert_false(etch_event_conflicts(&freed, &use));
    freed.size = 40;
    assert_true(etch_event_conflicts(&freed, &use));
    freed.size = 32;
    assert_false(etch_event_conflicts(&freed, &use));
}

/* The use failed before the initialisation came, which a passing run shows. */
static void list_takes_what_is_missing_from_a_passing_run(void **state)
{
    const struct etch_lab_event failing[] = {read_of(1, 20, 64)};
    const struct etch_lab_event passing[] = {write_of(0, 10, 64), read_of(1, 20, 64)};
    struct etch_lab_order v[ETCH_ORDERS_MAX];
    uint32_t n =
        etch_orders_list(v, (struct etch_lab_events){failing, N(failing)}, (struct etch_lab_events){passing, 2});

    (void)state;
    assert_int_equal(n, 1);
    assert_true(v[0].absent);
    assert_int_equal(v[0].before.site, 20);
    assert_int_equal(v[0].after.site, 10);
    assert_true(etch_order_holds(&v[0], (struct etch_lab_events){failing, N(failing)}));
    assert_false(etch_order_holds(&v[0], (struct etch_lab_events){passing, 2}));
}

static void holds_needs_both_moments(void **state)
{
    const struct etch_lab_event run[] = {write_of(0, 10, 64), read_of(1, 20, 64)};
    const struct etch_lab_order order = {.before = run[0], .after = run[1]};

    (void)state;
    assert_true(etch_order_holds(&order, (struct etch_lab_events){run, 2}));
    assert_false(etch_order_holds(&order, (struct etch_lab_events){run, 1}));
    assert_false(etch_order_holds(&order, (struct etch_lab_events){run + 1, 1}));
}

static void moment_goes_back_in_its_own_thread(void **state)
{
    const struct etch_lab_event run[] = {lock_of(0, 10, 8), lock_of(1, 20, 8), read_of(0, 25, 72), read_of(0, 30, 64)};
    struct etch_lab_moment m = {0};

    (void)state;
    assert_true(etch_moment_back((struct etch_lab_events){run, N(run)}, &run[3], 1, &m));
    assert_int_equal(m.site, 10);
    assert_false(etch_moment_back((struct etch_lab_events){run, N(run)}, &run[3], 2, &m));
}

/* A thread that reads in a loop: the order with the first read behind the write decides. */
static void list_takes_the_nearest_visits(void **state)
{
    struct etch_lab_event run[] = {read_of(1, 20, 64), write_of(0, 10, 64), read_of(1, 20, 64), read_of(1, 20, 64)};
    struct etch_lab_order v[ETCH_ORDERS_MAX];
    uint32_t n;

    (void)state;
    run[2].visit = 2;
    run[3].visit = 3;
    n = etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0});
    assert_int_equal(n, 2);
    assert_int_equal(v[0].before.site, 10);
    assert_int_equal(v[0].after.visit, 2);
}

/* Two threads add to one variable under a lock: the accesses are named, and the threads are held at the lock. */
static void list_swaps_critical_sections(void **state)
{
    const struct etch_lab_event run[] = {lock_of(0, 10, 8),    read_of(0, 11, 64),  write_of(0, 12, 64),
                                         release_of(0, 13, 8), lock_of(1, 20, 8),   read_of(1, 21, 64),
                                         write_of(1, 22, 64),  release_of(1, 23, 8)};
    struct etch_lab_order v[ETCH_ORDERS_MAX];
    uint32_t n = etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0});

    (void)state;
    assert_int_equal(n, 1);
    assert_false(v[0].before.sync || v[0].after.sync);
    assert_int_equal(v[0].hold_before.site, 10);
    assert_int_equal(v[0].hold_after.site, 20);
}

/* Locks alone: nothing says what they protect. */
static void list_names_locks_without_accesses(void **state)
{
    const struct etch_lab_event run[] = {lock_of(0, 10, 8), release_of(0, 13, 8), lock_of(1, 20, 8),
                                         release_of(1, 23, 8)};
    struct etch_lab_order v[ETCH_ORDERS_MAX];
    uint32_t n = etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0});

    (void)state;
    assert_int_equal(n, 1);
    assert_true(is_listed(v, n, 10, 20));
}

/* What main does before it makes a thread, and after it has joined the thread, has one order only. */
static void list_leaves_out_what_threads_order(void **state)
{
    struct etch_lab_event run[] = {write_of(0, 10, 64), lock_of(0, 11, 0),  read_of(1, 20, 64),
                                   write_of(1, 21, 72), lock_of(0, 12, 80), read_of(0, 13, 72)};
    struct etch_lab_order v[ETCH_ORDERS_MAX];

    (void)state;
    assert_int_equal(etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0}), 2);
    run[1].made = 2;
    assert_int_equal(etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0}), 1);
    run[4].joined = 2;
    assert_int_equal(etch_orders_list(v, (struct etch_lab_events){run, N(run)}, (struct etch_lab_events){0}), 0);
}

static void recurs_sees_the_same_statements_again(void **state)
{
    const struct etch_lab_event run[] = {write_of(0, 10, 64), read_of(1, 20, 64), write_of(0, 10, 64),
                                         read_of(1, 20, 64)};
    const struct etch_lab_order order = {.before = run[0], .after = run[1]},
                                turned = {.before = run[1], .after = run[0]};

    (void)state;
    assert_true(etch_order_recurs(&order, (struct etch_lab_events){run, 2}));
    assert_true(etch_order_recurs(&order, (struct etch_lab_events){run + 1, 3}));
    assert_false(etch_order_recurs(&order, (struct etch_lab_events){run + 1, 2}));
    assert_true(etch_order_recurs(&turned, (struct etch_lab_events){run + 1, 2}));
}

static void turned_is_the_opposite(void **state)
{
    const struct etch_lab_event a = write_of(0, 10, 64), b = read_of(1, 20, 64);
    struct etch_lab_order o = {
        .before = a, .after = b, .hold_before = etch_moment_of(&a), .hold_after = etch_moment_of(&b)};

    (void)state;
    assert_int_equal(etch_order_kept(&o).first.site, 10);
    assert_int_equal(etch_order_kept(&o).then.site, 20);
    assert_int_equal(etch_order_turned(&o).first.site, 20);
    assert_int_equal(etch_order_turned(&o).then.site, 10);
    o.whole = true;
    assert_int_equal(etch_order_turned(&o).first.site, 0);
    assert_int_equal(etch_order_turned(&o).first.thread, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conflicts_compares_bytes),
        cmocka_unit_test(list_has_each_conflict),
        cmocka_unit_test(list_leaves_out_reads_and_other_memory),
        cmocka_unit_test(conflict_of_a_freed_block),
        cmocka_unit_test(list_takes_what_is_missing_from_a_passing_run),
        cmocka_unit_test(holds_needs_both_moments),
        cmocka_unit_test(moment_goes_back_in_its_own_thread),
        cmocka_unit_test(list_takes_the_nearest_visits),
        cmocka_unit_test(list_swaps_critical_sections),
        cmocka_unit_test(list_names_locks_without_accesses),
        cmocka_unit_test(list_leaves_out_what_threads_order),
        cmocka_unit_test(recurs_sees_the_same_statements_again),
        cmocka_unit_test(turned_is_the_opposite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
