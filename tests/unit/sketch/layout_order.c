/* SPDX-License-Identifier: MIT */
/* Steps of two threads are ordered by their times only as far as the clocks of their CPUs were measured. */
#include "sketch/explain/layout.h"

#include "tests/unit/test.h"

static struct layout_item step_at(uint32_t thread, uint64_t lo, uint64_t hi)
{
    return (struct layout_item){
        .thread = thread, .place = thread, .seq = 1, .lo = lo, .hi = hi, .access = ETCH_NOWHERE};
}

/* Whether nothing proves an order of a step until 1000 and another thread's step from `begin` on. */
static bool is_open(bool known, uint64_t width, uint64_t begin)
{
    struct etch_run run = {.flow = true, .clocks_known = known, .clock_width = width};
    struct composition c = {.run = &run};
    bool open;

    assert_true(etch_array_push(&c.items, step_at(0, 900, 1000)));
    assert_true(etch_array_push(&c.items, step_at(1, begin, begin + 50)));
    assert_true(etch_layout_sort(&c));
    open = etch_layout_is_open(&c, 0, 1);
    assert_int_equal(c.items.v[0].rank == c.items.v[1].rank, open);
    etch_layout_release(&c);
    return open;
}

static void order_beyond_the_measured_bound(void **state)
{
    (void)state;
    assert_false(is_open(true, 20, 1021));
    assert_true(is_open(true, 20, 1020));
    assert_false(is_open(true, 9000, 10001));
    assert_true(is_open(true, 9000, 10000));
}

static void order_nothing_by_unmeasured_clocks(void **state)
{
    (void)state;
    assert_true(is_open(false, 0, 1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_beyond_the_measured_bound),
        cmocka_unit_test(order_nothing_by_unmeasured_clocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
