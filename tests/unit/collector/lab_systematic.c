/* SPDX-License-Identifier: MIT */
/* A program of a few threads with a list of operations each is run as the lab runs it: the given begin, then each
 * thread as long as it can. The search must come to each outcome that brute force comes to with the same bound, and to
 * no other. */
#include "collector/lab/systematic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 32u

struct program {
    uint32_t n_threads;
    struct op {
        uint64_t object;
        bool write;
        int lock; /* 1: takes the object, 2: releases it */
    } ops[3][8];  /* object 0: the end */
};

/* What a run has done so far. An outcome is what each read saw, and the last writer of each object. */
struct world {
    uint32_t at[3], writer[8], holder[8];
    uint64_t seen;
};

static bool can_run(const struct program *p, const struct world *w, uint32_t t)
{
    const struct op *op = &p->ops[t][w->at[t]];

    return t < p->n_threads && op->object && !(op->lock == 1 && w->holder[op->object]);
}

static uint64_t enabled(const struct program *p, const struct world *w)
{
    uint64_t mask = 0;

    for (uint32_t t = 0; t < p->n_threads; t++)
        mask |= (uint64_t)can_run(p, w, t) << t;
    return mask;
}

static void execute(const struct program *p, struct world *w, uint32_t t)
{
    const struct op *op = &p->ops[t][w->at[t]];

    if (op->lock)
        w->holder[op->object] = op->lock == 1 ? t + 1 : 0;
    if (op->write)
        w->writer[op->object] = t * 16 + w->at[t] + 1;
    else
        w->seen += (w->writer[op->object] + UINT64_C(1)) *
                   (UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)(t * 16 + w->at[t])) * UINT64_C(0x94d049bb133111eb);
    w->at[t]++;
}

static uint64_t outcome(const struct program *p, const struct world *w)
{
    uint64_t h = w->seen ^ enabled(p, w) << 60;

    for (unsigned i = 0; i < 8; i++)
        h = (h ^ w->writer[i]) * UINT64_C(0xbf58476d1ce4e5b9);
    for (unsigned t = 0; t < 3; t++)
        h = (h ^ w->at[t]) * UINT64_C(0xbf58476d1ce4e5b9);
    return h;
}

struct set {
    uint64_t v[4096];
    size_t n;
};

static void put(struct set *s, uint64_t value)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i] == value)
            return;
    assert_true(s->n < 4096);
    s->v[s->n++] = value;
}

static uint64_t runs_of_brute_force;

static void by_force(const struct program *p, struct world w, uint32_t last, unsigned left, struct set *found)
{
    uint64_t mask = enabled(p, &w);

    if (!mask) {
        put(found, outcome(p, &w));
        runs_of_brute_force++;
    }
    for (uint32_t t = 0; t < p->n_threads; t++) {
        struct world next = w;
        unsigned cost = t != last && mask >> last & 1;

        if (!(mask >> t & 1) || cost > left)
            continue;
        execute(p, &next, t);
        by_force(p, next, t, left - cost, found);
    }
}

static uint64_t run(const struct program *p, const struct etch_lab_segment *prefix, uint32_t n,
                    struct etch_lab_tree *tree)
{
    struct etch_lab_segment segments[MOST];
    struct etch_lab_choice choices[MOST];
    struct etch_lab_event events[MOST];
    struct world w = {0};
    uint32_t points = 0, last = 0, segment = 0, done = 0;
    uint64_t mask;

    while ((mask = enabled(p, &w))) {
        uint32_t t = last;

        choices[points] = (struct etch_lab_choice){.enabled = mask, .last = last};
        if (segment < n && done == prefix[segment].count) {
            segment++;
            done = 0;
        }
        if (segment < n) {
            t = prefix[segment].thread;
            done++;
        } else {
            while (!(mask >> t & 1))
                t = (t + 1) % p->n_threads;
        }
        assert_true(mask >> t & 1);
        events[points] = (struct etch_lab_event){.site = 100 + t * 16 + w.at[t],
                                                 .object = 64 * p->ops[t][w.at[t]].object,
                                                 .write = p->ops[t][w.at[t]].write || p->ops[t][w.at[t]].lock,
                                                 .thread = t,
                                                 .point = points};
        segments[points++] = (struct etch_lab_segment){t, 1};
        execute(p, &w, t);
        last = t;
    }
    assert_true(etch_lab_tree_add(tree, &(struct etch_lab_course){segments, points, choices, points, events, points}));
    return outcome(p, &w);
}

static void compare(const struct program *p, unsigned preemptions, uint64_t *runs)
{
    static struct set wanted, found;
    struct etch_lab_tree *tree = etch_lab_tree_new(preemptions);
    const struct etch_lab_segment *prefix;
    uint32_t n;

    wanted.n = found.n = 0;
    runs_of_brute_force = *runs = 0;
    by_force(p, (struct world){0}, 0, preemptions, &wanted);
    for (; etch_lab_tree_next(tree, &prefix, &n); ++*runs)
        put(&found, run(p, prefix, n, tree));
    assert_int_equal(found.n, wanted.n);
    for (size_t i = 0; i < wanted.n; i++)
        put(&found, wanted.v[i]);
    assert_int_equal(found.n, wanted.n);
    assert_true(*runs <= runs_of_brute_force);
    etch_lab_tree_free(tree);
}

/* One order of operations that do not depend on each other is enough. */
static void skips_the_same_state(void **state)
{
    const struct program p = {2,
                              {{{1, true, 0}, {2, true, 0}, {1, true, 0}, {2, true, 0}, {1, true, 0}},
                               {{3, true, 0}, {4, true, 0}, {3, true, 0}, {4, true, 0}, {3, true, 0}}}};
    uint64_t runs;

    (void)state;
    compare(&p, 8, &runs);
    assert_int_equal(runs_of_brute_force, 251);
    assert_true(runs < 60);
}

static void finds_all_random(void **state)
{
    uint64_t runs, sum = 0, sum_of_force = 0;

    (void)state;
    srand(1);
    for (unsigned i = 0; i < 300; i++) {
        struct program p = {2 + (uint32_t)rand() % 2, {{{0}}}};

        for (uint32_t t = 0; t < p.n_threads; t++)
            for (int k = 0, n = 2 + rand() % (p.n_threads == 2 ? 4 : 2); k < n; k++)
                p.ops[t][k] = (struct op){1 + (uint64_t)rand() % 3, rand() % 2, 0};
        compare(&p, (unsigned)rand() % 4, &runs);
        sum += runs;
        sum_of_force += runs_of_brute_force;
    }
    assert_true(sum < sum_of_force);
}

/* Two threads take two locks in opposite orders: the deadlock needs one preemption. */
static void finds_a_deadlock(void **state)
{
    const struct program p = {2,
                              {{{1, false, 1}, {2, false, 1}, {3, true, 0}, {2, false, 2}, {1, false, 2}},
                               {{2, false, 1}, {1, false, 1}, {3, true, 0}, {1, false, 2}, {2, false, 2}}}};
    uint64_t runs;

    (void)state;
    for (unsigned most = 0; most < 5; most++)
        compare(&p, most, &runs);
}

/* Schedules with fewer preemptions come first. */
static void few_come_first(void **state)
{
    const struct program p = {2, {{{1, true, 0}, {1, false, 0}, {1, true, 0}}, {{1, true, 0}, {1, false, 0}}}};
    struct etch_lab_tree *tree = etch_lab_tree_new(2);
    const struct etch_lab_segment *prefix;
    unsigned level = 0;
    uint32_t n;

    (void)state;
    while (etch_lab_tree_next(tree, &prefix, &n)) {
        assert_true(etch_lab_tree_level(tree) >= level);
        level = etch_lab_tree_level(tree);
        run(&p, prefix, n, tree);
    }
    assert_int_equal(level, 2);
    etch_lab_tree_restart(tree);
    assert_true(etch_lab_tree_next(tree, &prefix, &n));
    assert_int_equal(n, 0);
    etch_lab_tree_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skips_the_same_state),
        cmocka_unit_test(finds_all_random),
        cmocka_unit_test(finds_a_deadlock),
        cmocka_unit_test(few_come_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
