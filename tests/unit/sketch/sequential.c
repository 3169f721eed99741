/* SPDX-License-Identifier: MIT */
/* Predictors of programs of one thread: outcomes of branches, comparisons of values, and their rank. */
#include "tests/unit/sketch/made_runs.h"

#define RUNS 8
#define LENGTH 1000 /* steps of a run */

static struct etch_run *one_thread(bool failing, uint64_t key)
{
    struct etch_run *run = make(failing, key, NULL, 0);
    const struct etch_run_visit end = {.place = OTHER, .count = 1, .seq = LENGTH};

    free(run->threads.v[1].name);
    run->threads.n = 1;
    run->failing_thread = failing ? 0 : ETCH_NOWHERE;
    assert_true(etch_array_push(&run->visits, end));
    return run;
}

/* Half of the runs fail. */
static struct fixture runs_of_one_thread(void)
{
    struct fixture f = {.n = RUNS};

    name_places(&f.names);
    for (size_t i = 0; i < f.n; i++)
        f.runs[i] = one_thread(i < RUNS / 2, i + 1);
    return f;
}

static void outcome(struct etch_run *run, uint32_t place, uint64_t address, bool taken, uint64_t seq)
{
    const struct etch_run_branch b = {.place = place,
                                      .address = address,
                                      .taken = taken,
                                      .to = ETCH_NOWHERE,
                                      .first = seq,
                                      .last = seq,
                                      .at_last = true};

    for (size_t i = 0; i < run->branches.n; i++)
        run->branches.v[i].at_last = run->branches.v[i].at_last && run->branches.v[i].address != address;
    assert_true(etch_array_push(&run->branches, b));
}

/* Both branches separate the runs. The second is nearer to the failure, but follows from the first. */
static void first_deviation_ranks_first(void **state)
{
    struct fixture f = runs_of_one_thread();

    (void)state;
    for (size_t i = 0; i < f.n; i++) {
        outcome(f.runs[i], CHECK_IT, 64, f.runs[i]->failing, 300);
        outcome(f.runs[i], OTHER, 96, f.runs[i]->failing, 700);
    }
    find(&f);
    assert_int_equal(f.found.all.v[0].kind, ETCH_PREDICTOR_BRANCH);
    assert_int_equal(f.found.all.v[0].branch, ETCH_BRANCH_EVER);
    assert_int_equal(f.found.all.v[0].address, 64);
    assert_true(f.found.all.v[0].position > 0.29 && f.found.all.v[0].position < 0.31);
    release(&f);
}

/* The check that leads to the failing statement says only that it failed. The state in which another branch went its
 * way says more. */
static void last_check_ranks_behind_state(void **state)
{
    struct fixture f = runs_of_one_thread();

    (void)state;
    for (size_t i = 0; i < f.n; i++) {
        const struct etch_run_branch_pair pair = {.first = 0, .second = 1, .seq = 500};

        outcome(f.runs[i], CHECK_IT, 64, true, 100);
        outcome(f.runs[i], CLEAR, 96, true, 500);
        outcome(f.runs[i], OTHER, 128, f.runs[i]->failing, 900);
        f.runs[i]->branches.v[2].to = USE;
        if (f.runs[i]->failing)
            assert_true(etch_array_push(&f.runs[i]->branch_pairs, pair));
    }
    find(&f);
    assert_int_equal(f.found.all.v[0].branch, ETCH_BRANCH_AFTER);
    assert_int_equal(f.found.all.v[0].address, 96);
    release(&f);
}

/* A branch that only failing runs come to says no more than that they came there. */
static void outcome_that_follows_from_being_there_ranks_behind(void **state)
{
    struct fixture f = runs_of_one_thread();

    (void)state;
    for (size_t i = 0; i < f.n; i++) {
        if (f.runs[i]->failing)
            outcome(f.runs[i], MAKE, 32, true, 100);
        outcome(f.runs[i], CHECK_IT, 64, f.runs[i]->failing, 300);
    }
    find(&f);
    assert_int_equal(f.found.all.v[0].address, 64);
    assert_true(f.found.all.v[0].increase > 0.49);
    for (size_t i = 0; i < f.found.all.n; i++)
        if (f.found.all.v[i].address == 32)
            assert_true(f.found.all.v[i].increase == 0);
    release(&f);
}

/* Each outcome is in all runs. The state that the first left at the second is not. */
static void find_outcome_in_a_state(void **state)
{
    struct fixture f = runs_of_one_thread();

    (void)state;
    for (size_t i = 0; i < f.n; i++) {
        const struct etch_run_branch_pair pair = {.first = 0, .second = 2, .seq = 500};

        outcome(f.runs[i], CHECK_IT, 64, true, 100);
        outcome(f.runs[i], CHECK_IT, 64, false, 200);
        outcome(f.runs[i], OTHER, 96, true, 500);
        if (f.runs[i]->failing)
            assert_true(etch_array_push(&f.runs[i]->branch_pairs, pair));
    }
    find(&f);
    assert_int_equal(f.found.all.v[0].branch, ETCH_BRANCH_AFTER);
    assert_int_equal(f.found.all.v[0].places[0], CHECK_IT);
    assert_int_equal(f.found.all.v[0].places[1], OTHER);
    assert_int_equal(f.found.all.v[0].failing_true, RUNS / 2);
    assert_int_equal(f.found.all.v[0].passing_true, 0);
    release(&f);
}

/* Both outcomes came in all runs, and another one at last. */
static void find_last_outcome(void **state)
{
    struct fixture f = runs_of_one_thread();
    char text[200];

    (void)state;
    for (size_t i = 0; i < f.n; i++) {
        outcome(f.runs[i], CHECK_IT, 64, f.runs[i]->failing, 100);
        outcome(f.runs[i], CHECK_IT, 64, !f.runs[i]->failing, 200);
    }
    find(&f);
    assert_int_equal(f.found.all.v[0].branch, ETCH_BRANCH_AT_LAST);
    etch_predictor_text(&f.found.all.v[0], &f.names, text, sizeof(text));
    assert_string_equal(text, "f a.c:11 branches on the last time");
    release(&f);
}

static void find_absent_outcome(void **state)
{
    struct fixture f = runs_of_one_thread();
    char text[200];

    (void)state;
    for (size_t i = 0; i < f.n; i++) {
        if (!f.runs[i]->failing)
            outcome(f.runs[i], CHECK_IT, 64, false, 100);
        outcome(f.runs[i], CHECK_IT, 64, true, 200);
    }
    find(&f);
    assert_int_equal(f.found.all.v[0].branch, ETCH_BRANCH_NEVER);
    etch_predictor_text(&f.found.all.v[0], &f.names, text, sizeof(text));
    assert_string_equal(text, "f a.c:11 never branches on");
    release(&f);
}

/* With threads, the time of an outcome says nothing of another thread's. */
static void take_no_state_across_threads(void **state)
{
    struct fixture f = {.n = 2};

    (void)state;
    name_places(&f.names);
    for (size_t i = 0; i < f.n; i++) {
        f.runs[i] = make(i == 0, i + 1, NULL, 0);
        outcome(f.runs[i], CHECK_IT, 64, i == 0, 100);
        outcome(f.runs[i], CHECK_IT, 64, i != 0, 200);
    }
    find(&f);
    for (size_t i = 0; i < f.found.all.n; i++)
        assert_int_equal(f.found.all.v[i].branch, ETCH_BRANCH_EVER);
    release(&f);
}

static void value_of(struct etch_run *run, uint32_t variable, uint32_t place, uint64_t value, uint64_t seq)
{
    const struct etch_run_access a = {.place = place,
                                      .operand = variable,
                                      .watch = variable,
                                      .variable = variable,
                                      .object = variable,
                                      .seq = seq,
                                      .value = value,
                                      .size = 4,
                                      .call = 1,
                                      .event = ETCH_NOWHERE,
                                      .read = true,
                                      .known = true};
    const struct etch_run_visit v = {.place = place, .count = 1, .seq = seq};

    assert_true(etch_array_push(&run->accesses, a));
    assert_true(etch_array_push(&run->visits, v));
}

/* Every run has other numbers. In failing runs alone, the distance is less than the length. */
static void find_comparison(void **state)
{
    const uint64_t distance[RUNS] = {2, 5, 3, 9, 12, 30, 7, 8}, length[RUNS] = {6, 7, 9, 11, 3, 9, 5, 8};
    struct fixture f = runs_of_one_thread();
    char text[200];

    (void)state;
    assert_int_equal(etch_names_variable(&f.names, "y"), 1);
    for (size_t i = 0; i < f.n; i++) {
        value_of(f.runs[i], 0, CHECK_IT, distance[i], 100);
        value_of(f.runs[i], 1, CLEAR, length[i], 200);
    }
    find(&f);
    assert_int_equal(f.found.all.v[0].test, ETCH_VALUE_GREATER);
    etch_predictor_text(&f.found.all.v[0], &f.names, text, sizeof(text));
    assert_string_equal(text, "y > x at f a.c:12");
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_deviation_ranks_first),
        cmocka_unit_test(last_check_ranks_behind_state),
        cmocka_unit_test(outcome_that_follows_from_being_there_ranks_behind),
        cmocka_unit_test(find_outcome_in_a_state),
        cmocka_unit_test(find_last_outcome),
        cmocka_unit_test(find_absent_outcome),
        cmocka_unit_test(take_no_state_across_threads),
        cmocka_unit_test(find_comparison),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
