/* SPDX-License-Identifier: MIT */
/* The lab's strategies, on programs that are lists of operations. */
#include "collector/lab/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Programs: each thread executes its operations in order ---- */

struct program {
    uint32_t threads, length; /* operations of each thread */
    bool interesting;         /* every operation is */
};

/* Runs it, and writes who ran. Returns how many operations. */
static size_t run(const struct program *p, const struct etch_lab_spec *spec, uint8_t *order)
{
    static struct etch_lab_strategy s;
    uint32_t done[64] = {0}, last = 0;
    size_t n = 0;

    etch_lab_strategy_init(&s, spec);
    for (uint32_t t = 0; t < p->threads; t++)
        etch_lab_strategy_expect(&s, t, p->length);
    for (;;) {
        struct etch_lab_candidate list[64];
        struct etch_lab_view view = {.enabled = list, .last = last, .point = n};
        uint32_t chosen;

        for (uint32_t t = 0; t < p->threads; t++)
            if (done[t] < p->length)
                list[view.n++] =
                    (struct etch_lab_candidate){t, {.object = 8, .write = true, .interesting = p->interesting}};
        if (!view.n)
            return n;
        chosen = etch_lab_strategy_choose(&s, &view);
        assert_true(chosen < view.n);
        last = list[chosen].thread;
        done[last]++;
        order[n++] = (uint8_t)last;
    }
}

static const enum etch_lab_strategy_kind kinds[] = {ETCH_LAB_QUEUE, ETCH_LAB_RANDOM, ETCH_LAB_PCT, ETCH_LAB_POS,
                                                    ETCH_LAB_SURW};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void test_the_same_seed_is_the_same_schedule(void **state)
{
    const struct program p = {5, 20, true};

    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct etch_lab_spec spec = {.kind = kinds[k], .seed = seed, .depth = 3, .length = 100};
            uint8_t a[100], b[100];

            assert_int_equal(run(&p, &spec, a), 100);
            assert_int_equal(run(&p, &spec, b), 100);
            assert_memory_equal(a, b, sizeof(a));
        }
}

static void test_another_seed_is_another_schedule(void **state)
{
    const struct program p = {5, 20, true};

    (void)state;
    for (size_t k = 1; k < KINDS; k++) {
        unsigned different = 0;

        for (uint64_t seed = 0; seed < 50; seed++) {
            struct etch_lab_spec spec = {.kind = kinds[k], .seed = seed, .depth = 3, .length = 100};
            uint8_t a[100], b[100];

            run(&p, &spec, a);
            spec.seed = seed + 1000;
            run(&p, &spec, b);
            different += memcmp(a, b, sizeof(a)) != 0;
        }
        assert_true(different >= 49);
    }
}

static void test_queue_takes_turns(void **state)
{
    const struct program p = {3, 4, false};
    struct etch_lab_spec spec = {.kind = ETCH_LAB_QUEUE};
    uint8_t order[12];

    (void)state;
    run(&p, &spec, order);
    for (size_t i = 0; i < sizeof(order); i++)
        assert_int_equal(order[i], (i + 1) % 3);
}

/* Without change points pct runs each thread to its end; each change point adds one switch at most. */
static void test_pct_switches_as_often_as_its_depth_says(void **state)
{
    const struct program p = {4, 25, false};

    (void)state;
    for (uint32_t depth = 1; depth <= 5; depth++)
        for (uint64_t seed = 0; seed < 100; seed++) {
            struct etch_lab_spec spec = {.kind = ETCH_LAB_PCT, .seed = seed, .depth = depth, .length = 100};
            uint8_t order[100];
            unsigned switches = 0;

            run(&p, &spec, order);
            for (size_t i = 1; i < sizeof(order); i++)
                switches += order[i] != order[i - 1];
            assert_true(switches <= p.threads - 1 + (depth - 1) * 2);
        }
}

/* Two threads with three operations each have 20 orders. A uniform walk over them hits each about equally often; a
 * random walk prefers those that end with a run of one thread. */
static void count_orders(enum etch_lab_strategy_kind kind, unsigned counts[64], unsigned runs)
{
    const struct program p = {2, 3, true};

    for (uint64_t seed = 0; seed < runs; seed++) {
        struct etch_lab_spec spec = {.kind = kind, .seed = seed};
        uint8_t order[6];
        unsigned bits = 0;

        run(&p, &spec, order);
        for (size_t i = 0; i < sizeof(order); i++)
            bits = bits << 1 | order[i];
        counts[bits]++;
    }
}

/* Two threads spin until a third has executed an operation, for which surw waits for one of the two. */
static void test_surw_lets_a_held_thread_go(void **state)
{
    static struct etch_lab_strategy s;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct etch_lab_spec spec = {.kind = ETCH_LAB_SURW, .seed = seed};
        struct etch_lab_candidate list[3] = {{0, {.object = 8, .write = true}},
                                             {1, {.object = 8, .write = true}},
                                             {2, {.object = 16, .interesting = true}}};
        uint32_t n = 0;

        etch_lab_strategy_init(&s, &spec);
        for (uint32_t t = 0; t < 3; t++)
            etch_lab_strategy_expect(&s, t, t < 2 ? 1000 : 1);
        for (uint32_t last = 0; last != 2; n++) {
            struct etch_lab_view view = {.enabled = list, .n = 3, .last = last, .point = n};

            last = list[etch_lab_strategy_choose(&s, &view)].thread;
            assert_true(n < 10000);
        }
    }
}

/* Two threads have eight operations each. Returns how often they alternate. */
static unsigned switches(const struct etch_lab_spec *spec, bool interesting)
{
    static struct etch_lab_strategy s;
    uint32_t left[2] = {8, 8}, last = 0, n = 0;
    unsigned count = 0;

    etch_lab_strategy_init(&s, spec);
    etch_lab_strategy_expect(&s, 0, 8);
    etch_lab_strategy_expect(&s, 1, 8);
    while (left[0] && left[1]) {
        struct etch_lab_candidate list[2] = {{0, {.object = 8, .write = true, .interesting = interesting}},
                                             {1, {.object = 8, .write = true, .interesting = interesting}}};
        struct etch_lab_view view = {.enabled = list, .n = 2, .last = last, .point = n};
        uint32_t next = list[etch_lab_strategy_choose(&s, &view)].thread;

        count += n++ && next != last;
        last = next;
        left[next]--;
    }
    return count;
}

static void test_surw_strides(void **state)
{
    unsigned few = 0, few_uniform = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        few_uniform += switches(&(struct etch_lab_spec){.kind = ETCH_LAB_SURW, .seed = seed}, true) <= 3;
        few += switches(&(struct etch_lab_spec){.kind = ETCH_LAB_SURW, .seed = seed, .strides = true}, true) <= 3;
    }
    assert_in_range(few, 300, 970);
    assert_true(few_uniform < 100);
}

static void test_surw_sticks(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++)
        assert_int_equal(switches(&(struct etch_lab_spec){.kind = ETCH_LAB_SURW, .seed = seed, .sticks = true}, false),
                         0);
}

static void test_surw_is_uniform_over_orders(void **state)
{
    enum { RUNS = 20000 };
    unsigned counts[64] = {0}, orders = 0;

    (void)state;
    count_orders(ETCH_LAB_SURW, counts, RUNS);
    for (size_t i = 0; i < 64; i++) {
        orders += counts[i] > 0;
        if (counts[i])
            assert_in_range(counts[i], RUNS / 20 * 7 / 10, RUNS / 20 * 14 / 10);
    }
    assert_int_equal(orders, 20);
}

static void test_random_and_pos_reach_every_order(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        unsigned counts[64] = {0}, orders = 0;

        count_orders(k ? ETCH_LAB_POS : ETCH_LAB_RANDOM, counts, 5000);
        for (size_t i = 0; i < 64; i++)
            orders += counts[i] > 0;
        assert_int_equal(orders, 20);
    }
}

/* A thread that spins must not keep the others from running. */
static void test_who_gives_way_does_not_run_next(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (uint64_t seed = 0; seed < 200; seed++) {
            const struct etch_lab_candidate list[2] = {{0, {.object = 8}}, {1, {.object = 8}}};
            static struct etch_lab_strategy s;
            struct etch_lab_spec spec = {.kind = kinds[k], .seed = seed, .depth = 1};
            struct etch_lab_view view = {.enabled = list, .n = 2};
            uint32_t first;

            etch_lab_strategy_init(&s, &spec);
            first = etch_lab_strategy_choose(&s, &view);
            view.last = list[first].thread;
            view.yields = true;
            assert_int_not_equal(etch_lab_strategy_choose(&s, &view), first);
        }
}

static void test_names(void **state)
{
    static const char *const wrong[] = {"",
                                        "que",
                                        "queues",
                                        "random:",
                                        "random:x",
                                        "random:1,2",
                                        "pct:1,",
                                        "pct:1,0",
                                        "pct:1,17",
                                        "surw:-1",
                                        "surw:99999999999999999999"};
    struct etch_lab_spec spec;

    (void)state;
    assert_true(etch_lab_spec_parse(&spec, "pct:7,5"));
    assert_int_equal(spec.kind, ETCH_LAB_PCT);
    assert_int_equal(spec.seed, 7);
    assert_int_equal(spec.depth, 5);
    assert_true(etch_lab_spec_parse(&spec, "surw:12"));
    assert_int_equal(spec.kind, ETCH_LAB_SURW);
    assert_int_equal(spec.seed, 12);
    for (size_t k = 0; k < KINDS; k++) {
        assert_true(etch_lab_spec_parse(&spec, etch_lab_strategy_name(kinds[k])));
        assert_int_equal(spec.kind, kinds[k]);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(etch_lab_spec_parse(&spec, wrong[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_seed_is_the_same_schedule),
        cmocka_unit_test(test_another_seed_is_another_schedule),
        cmocka_unit_test(test_queue_takes_turns),
        cmocka_unit_test(test_pct_switches_as_often_as_its_depth_says),
        cmocka_unit_test(test_surw_is_uniform_over_orders),
        cmocka_unit_test(test_surw_strides),
        cmocka_unit_test(test_surw_sticks),
        cmocka_unit_test(test_surw_lets_a_held_thread_go),
        cmocka_unit_test(test_random_and_pos_reach_every_order),
        cmocka_unit_test(test_who_gives_way_does_not_run_next),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
