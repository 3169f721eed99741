/* SPDX-License-Identifier: MIT */
/* The stop rule of a diagnosis. */
#include "diagnose/stop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Of threads, with one set of watches that has seen enough, and a strong order. */
static struct etch_set_seen seen_enough = {9, 4, 5};

static struct etch_stop strong(void)
{
    static char text[] = "main bug.c:39 before consumer bug.c:18";

    return (struct etch_stop){.sets = &seen_enough,
                              .n_sets = 1,
                              .best = {.text = text, .f = 1, .failing_true = 2, .passing = 5},
                              .runs = 20,
                              .passed = 10,
                              .slots = 4,
                              .plans = 1,
                              .threaded = true};
}

static void next_set_is_the_nearest_that_is_open(void **state)
{
    struct etch_set_seen sets[3] = {{0}};

    (void)state;
    assert_int_equal(etch_stop_next_set(NULL, 0), 0);
    assert_int_equal(etch_stop_next_set(sets, 3), 0);
    sets[0] = (struct etch_set_seen){8, 2, 5};
    assert_int_equal(etch_stop_next_set(sets, 3), 1);
    sets[1] = (struct etch_set_seen){7, 2, 4};
    assert_int_equal(etch_stop_next_set(sets, 3), 1);
}

/* A set that never fails does not hold up the others; the one that is behind comes first. */
static void next_set_is_not_held_up(void **state)
{
    struct etch_set_seen sets[2] = {{12, 0, 12}, {0, 0, 0}};

    (void)state;
    assert_int_equal(etch_stop_next_set(sets, 2), 1);
    sets[1].tries = 1;
    assert_int_equal(etch_stop_next_set(sets, 2), 0);
    sets[0] = (struct etch_set_seen){9, 2, 5};
    sets[1] = (struct etch_set_seen){8, 3, 5};
    assert_int_equal(etch_stop_next_set(sets, 2), 1); /* all are seen: the one with fewer runs */
}

static void round_is_over_with_every_set(void **state)
{
    struct etch_set_seen sets[2] = {{0, 2, 5}, {0, 2, 4}};
    struct etch_stop s = {.sets = sets, .n_sets = 2, .threaded = true};

    (void)state;
    assert_false(etch_stop_round_over(&s, false));
    sets[1].passing = 5;
    assert_true(etch_stop_round_over(&s, false));
    assert_false(etch_stop_round_over(&s, true)); /* as many failures as are kept: 4 each */
    sets[0] = (struct etch_set_seen){0, 8, 10};   /* the other never fails: as many over all */
    sets[1] = (struct etch_set_seen){0, 0, 0};
    assert_true(etch_stop_round_over(&s, false));
    assert_true(etch_stop_round_over(&s, true));
    s.exhausted = s.native = true; /* 8 each, at last */
    assert_false(etch_stop_round_over(&s, true));
}

static void one_set_wants_more_failures(void **state)
{
    struct etch_set_seen set = {0, 3, 9};
    struct etch_stop s = {.sets = &set, .n_sets = 1, .threaded = true};

    (void)state;
    assert_false(etch_stop_round_over(&s, false));
    set.failing = 4;
    assert_true(etch_stop_round_over(&s, false));
}

static void passes_are_kept_until_enough(void **state)
{
    struct etch_stop s = {.passing_kept = {3, 40}};
    struct etch_set_seen set = {0, 0, 4};

    (void)state;
    assert_false(etch_stop_enough_passes(&s, false, NULL));
    s.passing_kept[0] = 4;
    assert_true(etch_stop_enough_passes(&s, false, NULL));
    assert_true(etch_stop_enough_passes(&s, true, NULL));
    assert_false(etch_stop_enough_passes(&s, true, &set)); /* its set needs one more */
    set.passing = 5;
    assert_true(etch_stop_enough_passes(&s, true, &set));
    s.passing_kept[1] = 39;
    assert_false(etch_stop_enough_passes(&s, true, &set));
}

static void failures_are_kept_by_bug_and_set(void **state)
{
    struct etch_stop s = {.threaded = true};
    struct etch_set_seen set = {0, 4, 0};

    (void)state;
    assert_false(etch_stop_enough_failures(&s, true, true, 30, &set));
    set.failing = 5;
    assert_true(etch_stop_enough_failures(&s, true, true, 1, &set));
    s.exhausted = s.native = true;
    assert_false(etch_stop_enough_failures(&s, true, true, 1, &set));
    assert_false(etch_stop_enough_failures(&s, false, true, 4, &set)); /* another bug's */
    assert_true(etch_stop_enough_failures(&s, false, true, 5, &set));
    assert_true(etch_stop_enough_failures(&s, false, false, 1, NULL)); /* nowhere */
}

static void strong_predictor_ends_it(void **state)
{
    struct etch_stop s = strong();

    (void)state;
    assert_true(etch_stop_is_enough(&s));
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_END);
    assert_int_equal(s.enough, 20);
    s.best.passing = 4;
    assert_false(etch_stop_is_enough(&s));
    s = strong();
    s.best.f = 0.96;
    assert_false(etch_stop_is_enough(&s));
    s = strong();
    s.best.failing_true = 1;
    assert_false(etch_stop_is_enough(&s));
    s = strong();
    s.best.text = NULL;
    assert_false(etch_stop_is_enough(&s));
}

/* A value that threads share came of something: only once all is watched it is taken for the cause, with a run more. */
static void symptom_is_not_enough(void **state)
{
    struct etch_stop s = strong();

    (void)state;
    s.best.is_value = true;
    s.best.failing_true = 3;
    assert_true(etch_stop_is_symptom(&s));
    assert_false(etch_stop_is_enough(&s));
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_WIDEN);
    s.exhausted = true;
    assert_true(etch_stop_is_enough(&s));
    s.best.failing_true = 2;
    assert_false(etch_stop_is_enough(&s));
    s.best.failing_true = 3;
    s.exhausted = s.threaded = false;
    assert_false(etch_stop_is_symptom(&s));
}

/* Runs of one thread differ by their inputs: more of them are wanted. */
static void one_thread_wants_more_runs(void **state)
{
    struct etch_set_seen set = {0, 7, 16};
    struct etch_stop s = strong();

    (void)state;
    s.threaded = false;
    assert_false(etch_stop_is_enough(&s));
    s.best.failing_true = 6;
    assert_false(etch_stop_is_enough(&s));
    s.best.passing = 16;
    assert_true(etch_stop_is_enough(&s));
    s.sets = &set;
    assert_false(etch_stop_round_over(&s, false));
    set.failing = 8;
    assert_true(etch_stop_round_over(&s, false));
    set.passing = 15;
    assert_false(etch_stop_round_over(&s, false));
}

/* The other sets of the round are still looked at, for a while. */
static void round_is_brought_to_its_end(void **state)
{
    struct etch_set_seen sets[2] = {{9, 4, 5}, {1, 0, 0}};
    struct etch_stop s = strong();

    (void)state;
    s.sets = sets;
    s.n_sets = 2;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_RUN);
    s.runs = 43;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_RUN);
    s.runs = 44; /* 12 runs for each set since it was enough */
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_END);
}

static void weak_round_widens_until_all_is_watched(void **state)
{
    struct etch_set_seen set = {9, 4, 5};
    struct etch_stop s = strong();

    (void)state;
    s.best.f = 0.5;
    s.sets = &set;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_WIDEN);
    set.passing = 4;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_RUN);
    set.passing = 5;
    s.exhausted = true;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_END);
    assert_int_equal(etch_stop_decide(&s, true), ETCH_NEXT_REPLAN);
}

static void watches_that_disturb_are_halved(void **state)
{
    struct etch_set_seen set = {16, 16, 0};
    struct etch_stop s = strong();

    (void)state;
    s.best.f = 0.5;
    s.sets = &set;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_FEWER);
    set.failing = 15;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_RUN);
    set.failing = 16;
    s.slots = 1;
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_RUN);
    s.slots = 4;
    s.passed = 0; /* it never passes, with watches or without */
    assert_int_equal(etch_stop_decide(&s, false), ETCH_NEXT_RUN);
}

static void plan_is_made_anew_only_for_registers(void **state)
{
    struct etch_set_seen sets[2] = {{1, 1, 0}, {0, 0, 0}};
    struct etch_stop s = {.sets = sets, .n_sets = 2, .plans = 1, .native = true};

    (void)state;
    assert_false(etch_stop_may_replan(&s)); /* a set was not tried */
    sets[1].passing = 1;
    assert_true(etch_stop_may_replan(&s));
    s.plans = 4;
    assert_false(etch_stop_may_replan(&s));
    s.plans = 3;
    s.native = false;
    assert_false(etch_stop_may_replan(&s));
    s = strong();
    s.native = true;
    assert_false(etch_stop_may_replan(&s)); /* it is enough */
}

static void passes_beyond_enough_are_not_ranked(void **state)
{
    struct etch_set_seen set = {9, 3, 6};
    struct etch_stop s = {.sets = &set, .n_sets = 1, .threaded = true};

    (void)state;
    assert_false(etch_stop_worth_ranking(&s, &set));
    set.passing = 5;
    assert_true(etch_stop_worth_ranking(&s, &set));
    set.passing = 6;
    set.failing = 4; /* the round is over with it */
    assert_true(etch_stop_worth_ranking(&s, &set));
    set.failing = 3;
    s.best.f = 1;
    assert_true(etch_stop_worth_ranking(&s, &set));
}

static void never_passing_is_hopeless(void **state)
{
    struct etch_stop s = {.runs = 20, .failing_tracked = 2};

    (void)state;
    assert_true(etch_stop_is_hopeless(&s));
    s.threaded = true;
    assert_false(etch_stop_is_hopeless(&s));
    s.runs = 100;
    assert_true(etch_stop_is_hopeless(&s));
    s.patient = true;
    assert_false(etch_stop_is_hopeless(&s));
    s.patient = false;
    s.passed = 1;
    assert_false(etch_stop_is_hopeless(&s));
    s.passed = 0;
    s.failing_tracked = 1;
    assert_false(etch_stop_is_hopeless(&s));
    s = (struct etch_stop){.runs = 3, .failing_tracked = 2, .repeats = true};
    assert_true(etch_stop_is_hopeless(&s));
    s.runs = 2;
    assert_false(etch_stop_is_hopeless(&s));
}

static void verdicts_have_names(void **state)
{
    (void)state;
    for (int v = ETCH_VERDICT_PASS; v <= ETCH_VERDICT_HANG; v++)
        assert_int_equal(etch_verdict_of(etch_verdict_name((enum etch_verdict)v)), v);
    assert_string_equal(etch_verdict_name(ETCH_VERDICT_PASS), "pass"); /* as stores have it */
    assert_string_equal(etch_verdict_name(ETCH_VERDICT_HANG), "hang");
    assert_int_equal(etch_verdict_of("?"), ETCH_VERDICT_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_set_is_the_nearest_that_is_open),
        cmocka_unit_test(next_set_is_not_held_up),
        cmocka_unit_test(round_is_over_with_every_set),
        cmocka_unit_test(one_set_wants_more_failures),
        cmocka_unit_test(passes_are_kept_until_enough),
        cmocka_unit_test(failures_are_kept_by_bug_and_set),
        cmocka_unit_test(strong_predictor_ends_it),
        cmocka_unit_test(symptom_is_not_enough),
        cmocka_unit_test(one_thread_wants_more_runs),
        cmocka_unit_test(round_is_brought_to_its_end),
        cmocka_unit_test(weak_round_widens_until_all_is_watched),
        cmocka_unit_test(watches_that_disturb_are_halved),
        cmocka_unit_test(plan_is_made_anew_only_for_registers),
        cmocka_unit_test(passes_beyond_enough_are_not_ranked),
        cmocka_unit_test(never_passing_is_hopeless),
        cmocka_unit_test(verdicts_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
