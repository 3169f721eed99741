/* SPDX-License-Identifier: MIT */
/* Predictors over hand-made runs: which are found, and how they are ranked. */
#include "tests/unit/sketch/made_runs.h"

static void rate_f_half(void **state)
{
    double lo, hi;

    (void)state;
    assert_true(etch_f_half(1, 1) == 1);
    assert_true(etch_f_half(0, 1) == 0);
    assert_true(etch_f_half(0, 0) == 0);
    assert_true(etch_f_half(1, 0.5) > etch_f_half(0.5, 1)); /* precision counts more */
    etch_wilson(0, 0, &lo, &hi);
    assert_true(lo == 0 && hi == 1);
    etch_wilson(5, 5, &lo, &hi);
    assert_true(lo > 0.5 && lo < 0.6 && hi == 1);
    etch_wilson(0, 5, &lo, &hi);
    assert_true(lo == 0 && hi > 0.4 && hi < 0.5);
}

static void find_order(void **state)
{
    struct fixture f = {.n = 4};
    const struct etch_predictor *top;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    f.runs[2] = failing_order(3);
    f.runs[3] = passing_order(4);
    find(&f);
    assert_true(f.found.all.n > 0);
    top = &f.found.all.v[0];
    assert_int_equal(top->kind, ETCH_PREDICTOR_ORDER);
    assert_string_equal(top->pattern, "WR");
    assert_int_equal(top->places[0], CLEAR);
    assert_int_equal(top->places[1], USE);
    assert_int_equal(top->failing_true, 2);
    assert_int_equal(top->failing, 2);
    assert_int_equal(top->passing_true, 0);
    assert_int_equal(top->passing, 2);
    assert_int_equal(top->unknown, 0);
    assert_true(top->f == 1 && top->f_lo < 1 && top->f_lo > 0);
    release(&f);
}

static void find_value(void **state)
{
    struct fixture f = {.n = 2};
    const struct etch_predictor *value;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    find(&f);
    value = best_of(&f, ETCH_PREDICTOR_VALUE);
    assert_non_null(value);
    assert_int_equal(value->test, ETCH_VALUE_ZERO);
    assert_int_equal(value->places[0], USE);
    assert_true(value->f == 1);
    release(&f);
}

/* Another address in each run is no value that a failing run has in common with itself; another number is. */
static void take_no_address_for_a_value(void **state)
{
    const uint64_t numbers[] = {0x7ffc6fc251c0, 70000};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct made failing[] = {{0, MAKE, 'W', numbers[i], 100, 0, 0}, {1, USE, 'R', numbers[i], 500, 0, 1}};
        struct fixture f = {.n = 2};

        name_places(&f.names);
        f.runs[0] = make(true, 1, failing, 2);
        f.runs[1] = passing_order(2);
        find(&f);
        assert_int_equal(best_of(&f, ETCH_PREDICTOR_VALUE) != NULL, i == 1);
        release(&f);
    }
}

/* The two accesses may have been at the same time: neither order is claimed, and the run counts for neither. */
static void count_unordered_as_unknown(void **state)
{
    const struct made close[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {0, CLEAR, 'W', 0, 300, 290, 0}, {1, USE, 'R', 0, 305, 292, 1}};
    struct fixture f = {.n = 3};
    const struct etch_predictor *order_one;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    f.runs[2] = make(true, 3, close, 3);
    f.runs[2]->accesses.v[2].known = f.runs[2]->accesses.v[1].known = false;
    find(&f);
    order_one = best_of(&f, ETCH_PREDICTOR_ORDER);
    assert_non_null(order_one);
    assert_int_equal(order_one->failing, 1);
    assert_int_equal(order_one->failing_true, 1);
    assert_int_equal(order_one->unknown, 1);
    release(&f);
}

static void find_atomicity(void **state)
{
    static const struct {
        char how[4];
        const char *name;
    } cases[] = {{"RWR", "RWR"}, {"WWR", "WWR"}, {"RWW", "RWW"}, {"WRW", "WRW"}, {"UUR", "WWR"},
                 {"RUU", "RWW"}, {"RRR", NULL},  {"WRR", NULL},  {"RRW", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct made made[] = {{1, CHECK_IT, cases[i].how[0], 7, 100, 0, 1},
                                    {0, CLEAR, cases[i].how[1], 0, 300, 0, 0},
                                    {1, USE, cases[i].how[2], 0, 500, 0, 1}};
        struct fixture f = {.n = 1};
        const struct etch_predictor *p;

        name_places(&f.names);
        f.runs[0] = make(true, 1, made, 3);
        find(&f);
        p = best_of(&f, ETCH_PREDICTOR_ATOMICITY);
        assert_true(!p == !cases[i].name);
        if (p)
            assert_string_equal(p->pattern, cases[i].name);
        release(&f);
    }
}

/* The write that should have come first had not run at all when the read failed. */
static void find_read_too_early(void **state)
{
    const struct made early[] = {{1, USE, 'R', 0, 500, 0, 1}};
    const struct made late[] = {{0, CLEAR, 'W', 7, 300, 0, 0}, {1, USE, 'R', 7, 500, 0, 1}};
    struct fixture f = {.n = 2};
    const struct etch_predictor *top;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, early, 1);
    f.runs[1] = make(false, 2, late, 2);
    find(&f);
    top = &f.found.all.v[0];
    assert_int_equal(top->kind, ETCH_PREDICTOR_ORDER);
    assert_string_equal(top->pattern, "RW");
    assert_int_equal(top->places[0], USE);
    assert_int_equal(top->places[1], CLEAR);
    assert_int_equal(top->passing_true, 0);
    assert_int_equal(top->passing, 1);
    release(&f);
}

/* Within one thread: by which statement the value was written that failed. */
static void find_origin(void **state)
{
    const struct made bad[] = {
        {1, MAKE, 'W', 7, 100, 0, 1}, {1, CLEAR, 'W', 9, 300, 0, 1}, {1, USE, 'R', 9, 500, 0, 1}};
    const struct made good[] = {
        {1, CLEAR, 'W', 9, 100, 0, 1}, {1, MAKE, 'W', 7, 300, 0, 1}, {1, USE, 'R', 7, 500, 0, 1}};
    struct fixture f = {.n = 2};
    const struct etch_predictor *top;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, bad, 3);
    f.runs[1] = make(false, 2, good, 3);
    find(&f);
    top = &f.found.all.v[0];
    assert_int_equal(top->kind, ETCH_PREDICTOR_ORIGIN);
    assert_int_equal(top->places[0], CLEAR);
    assert_int_equal(top->places[1], USE);
    assert_int_equal(top->passing_true, 0);
    release(&f);
}

/* A statement whose work it is to write that wrote it last: how a branch went says why. */
static void rank_proper_origin_behind_branch(void **state)
{
    const struct made bad[] = {{1, CLEAR, 'W', 9, 300, 0, 1}, {1, USE, 'R', 9, 500, 0, 1}};
    const struct made good[] = {{1, MAKE, 'W', 7, 300, 0, 1}, {1, USE, 'R', 7, 500, 0, 1}};

    (void)state;
    for (int named = 0; named < 2; named++) {
        struct fixture f = {.n = 2};

        name_places(&f.names);
        if (named)
            assert_int_equal(etch_names_locate(&f.names, 0, "f:item.1"), 0);
        f.runs[0] = make(true, 1, bad, 2);
        f.runs[1] = make(false, 2, good, 2);
        branch(f.runs[0], true);
        branch(f.runs[1], false);
        find(&f);
        assert_int_equal(f.found.all.v[0].kind, named ? ETCH_PREDICTOR_BRANCH : ETCH_PREDICTOR_ORIGIN);
        assert_int_equal(best_of(&f, ETCH_PREDICTOR_ORIGIN)->proper, named);
        release(&f);
    }
}

/* Between write and read a library was at another field of the structure: what was read is what another owner left. */
static void take_no_leftover_for_an_origin(void **state)
{
    const struct made bad[] = {{1, OTHER, 'W', 1, 100, 0, 1},
                               {1, CLEAR, 'W', 9, 200, 0, 1},
                               {1, OTHER, 'W', 1, 300, 0, 1},
                               {1, USE, 'R', 9, 500, 0, 1}};
    const struct made good[] = {{1, MAKE, 'W', 7, 300, 0, 1}, {1, USE, 'R', 7, 500, 0, 1}};

    (void)state;
    for (int freed = 0; freed < 2; freed++) {
        struct fixture f = {.n = 2};
        uint32_t other;

        name_places(&f.names);
        other = etch_names_variable(&f.names, "y");
        assert_int_equal(etch_names_locate(&f.names, 0, "f:item.1"), 0);
        assert_int_equal(etch_names_locate(&f.names, other, "f:item.0"), 0);
        f.runs[0] = make(true, 1, bad, 4);
        f.runs[1] = make(false, 2, good, 2);
        f.runs[0]->accesses.v[0].operand = f.runs[0]->accesses.v[0].variable = other;
        f.runs[0]->accesses.v[2].operand = ETCH_NOWHERE;
        f.runs[0]->accesses.v[2].variable = other;
        f.runs[0]->accesses.v[0].object = f.runs[0]->accesses.v[2].object = 2;
        f.runs[0]->accesses.v[1].operand = ETCH_NOWHERE;
        f.runs[0]->accesses.v[2].outside = freed;
        branch(f.runs[0], true);
        branch(f.runs[1], false);
        find(&f);
        assert_int_equal(f.found.all.v[0].kind, freed ? ETCH_PREDICTOR_BRANCH : ETCH_PREDICTOR_ORIGIN);
        assert_int_equal(best_of(&f, ETCH_PREDICTOR_ORIGIN)->left_over, freed);
        release(&f);
    }
}

/* A state between two writes was seen, and the second had not been made when it failed. */
static void find_unfinished_write(void **state)
{
    const struct made seen[] = {{0, MAKE, 'W', 1, 100, 0, 0}, {1, USE, 'R', 1, 300, 0, 1}};
    const struct made early[] = {
        {1, USE, 'R', 0, 50, 0, 1}, {0, MAKE, 'W', 1, 100, 0, 0}, {0, CLEAR, 'W', 2, 200, 0, 0}};
    const struct made late[] = {
        {0, MAKE, 'W', 1, 100, 0, 0}, {0, CLEAR, 'W', 2, 200, 0, 0}, {1, USE, 'R', 2, 300, 0, 1}};
    struct fixture f = {.n = 3};
    const struct etch_predictor *top;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, seen, 2);
    f.runs[1] = make(false, 2, early, 3);
    f.runs[2] = make(false, 3, late, 3);
    find(&f);
    top = &f.found.all.v[0];
    assert_int_equal(top->kind, ETCH_PREDICTOR_ATOMICITY);
    assert_string_equal(top->pattern, "WRW");
    assert_int_equal(top->places[0], MAKE);
    assert_int_equal(top->places[1], USE);
    assert_int_equal(top->places[2], CLEAR);
    assert_true(top->f == 1);
    release(&f);
}

/* One new and one old: neither order alone sets failing runs apart, the two together do. */
static void find_two_variables(void **state)
{
    const struct made torn[] = {
        {0, MAKE, 'W', 1, 100, 0, 0}, {1, CHECK_IT, 'R', 1, 300, 0, 1}, {1, USE, 'R', 5, 400, 0, 1}};
    const struct made before[] = {{1, CHECK_IT, 'R', 0, 100, 0, 1},
                                  {1, USE, 'R', 5, 150, 0, 1},
                                  {0, MAKE, 'W', 1, 300, 0, 0},
                                  {0, CLEAR, 'W', 6, 400, 0, 0}};
    const struct made after[] = {{0, MAKE, 'W', 1, 100, 0, 0},
                                 {0, CLEAR, 'W', 6, 200, 0, 0},
                                 {1, CHECK_IT, 'R', 1, 300, 0, 1},
                                 {1, USE, 'R', 6, 400, 0, 1}};
    struct fixture f = {.n = 3};
    const struct etch_predictor *top;

    (void)state;
    name_places(&f.names);
    assert_int_equal(etch_names_variable(&f.names, "y"), 1);
    f.runs[0] = make(true, 1, torn, 3);
    f.runs[1] = make(false, 2, before, 4);
    f.runs[2] = make(false, 3, after, 4);
    for (size_t i = 0; i < 3; i++) {
        of_second_variable(f.runs[i], USE);
        of_second_variable(f.runs[i], CLEAR);
        assert_true(etch_array_push(&f.runs[i]->watched, 1));
    }
    find(&f);
    top = &f.found.all.v[0];
    assert_int_equal(top->kind, ETCH_PREDICTOR_ATOMICITY);
    assert_string_equal(top->pattern, "WRRW");
    assert_int_equal(top->places[0], MAKE);
    assert_int_equal(top->places[1], CHECK_IT);
    assert_int_equal(top->places[2], USE);
    assert_int_equal(top->places[3], CLEAR);
    assert_int_equal(top->variable, 0);
    assert_int_equal(top->second, 1);
    assert_true(top->f == 1);
    release(&f);
}

/* That is not what differs: it is the same way round in passing runs. */
static void rank_constant_order_last(void **state)
{
    const struct made bad[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {1, USE, 'R', 7, 300, 0, 1}, {0, CLEAR, 'W', 0, 500, 0, 0}};
    const struct made good[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {0, CLEAR, 'W', 0, 300, 0, 0}, {1, USE, 'R', 0, 500, 0, 1}};
    struct fixture f = {.n = 2};

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, bad, 3);
    f.runs[1] = make(false, 2, good, 3);
    find(&f);
    for (size_t i = 0; i < f.found.all.n; i++) {
        const struct etch_predictor *p = &f.found.all.v[i];

        if (p->kind != ETCH_PREDICTOR_ORDER)
            continue;
        assert_int_equal(p->places[0], USE); /* and not "made before used", as true as that is */
        assert_int_equal(p->places[1], CLEAR);
        break;
    }
    release(&f);
}

/* What no passing run can tell says nothing. */
static void claim_nothing_without_passing(void **state)
{
    struct fixture f = {.n = 2};

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    f.runs[1]->flow = false;
    f.runs[1]->visits.n = f.runs[1]->accesses.n = f.runs[1]->watched.n = 0;
    find(&f);
    for (size_t i = 0; i < f.found.all.n; i++)
        assert_true(f.found.all.v[i].f == 0);
    release(&f);
}

/* Two names of one memory are one variable; an element of an array may lie anywhere. */
static void unify_names(void **state)
{
    struct fixture f = {.n = 1};
    struct etch_run *run;

    (void)state;
    name_places(&f.names);
    assert_int_equal(etch_names_variable(&f.names, "get()->#0"), 1);
    assert_int_equal(etch_names_variable(&f.names, "s->name"), 2);
    assert_int_equal(etch_names_variable(&f.names, "r->cells[i]"), 3);
    run = f.runs[0] = failing_order(1);
    run->accesses.v[0].operand = 1;
    run->accesses.v[0].watch = 2;
    run->accesses.v[1].operand = 3;
    run->accesses.v[1].watch = 2;
    run->accesses.v[2].operand = run->accesses.v[2].watch = 1;
    assert_int_equal(etch_runs_unify(&f.names, f.runs, 1), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(run->accesses.v[i].variable, 2);
    run->accesses.v[0].operand = run->accesses.v[0].watch = 3;
    run->accesses.v[0].object = 7;
    assert_int_equal(etch_runs_unify(&f.names, f.runs, 1), 0);
    assert_int_equal(run->accesses.v[0].variable, 3);
    release(&f);
}

static void leave_out_the_failure_itself(void **state)
{
    struct fixture f = {.n = 2};

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = make(false, 2, (const struct made[]){{0, MAKE, 'W', 7, 100, 0, 0}}, 1);
    find(&f);
    for (size_t i = 0; i < f.found.all.n; i++)
        assert_false(f.found.all.v[i].kind == ETCH_PREDICTOR_EXECUTED && f.found.all.v[i].places[0] == USE);
    release(&f);
}

/* A run with losses cannot say that something did not run. */
static void count_lost_as_unknown(void **state)
{
    struct fixture f = {.n = 2};
    struct etch_predictor p = {
        .kind = ETCH_PREDICTOR_EXECUTED, .n_places = 1, .places = {OTHER}, .variable = ETCH_NOWHERE};

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    assert_int_equal(etch_predictor_holds(&p, &f.names, f.runs[0]), ETCH_FALSE);
    f.runs[0]->lost = true;
    assert_int_equal(etch_predictor_holds(&p, &f.names, f.runs[0]), ETCH_UNKNOWN);
    p.negated = true;
    assert_int_equal(etch_predictor_holds(&p, &f.names, f.runs[1]), ETCH_TRUE);
    release(&f);
}

/* A damaged recording may have accesses of no size, or of more than any register holds. */
static void take_values_of_any_size(void **state)
{
    struct fixture f = {.n = 4};

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    f.runs[2] = failing_order(3);
    f.runs[3] = passing_order(4);
    for (size_t i = 0; i < f.n; i++)
        for (size_t k = 0; k < f.runs[i]->accesses.n; k++)
            f.runs[i]->accesses.v[k].size = i < 2 ? 0 : UINT32_MAX;
    find(&f);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_f_half),
        cmocka_unit_test(find_order),
        cmocka_unit_test(find_value),
        cmocka_unit_test(take_no_address_for_a_value),
        cmocka_unit_test(count_unordered_as_unknown),
        cmocka_unit_test(find_atomicity),
        cmocka_unit_test(find_read_too_early),
        cmocka_unit_test(find_origin),
        cmocka_unit_test(rank_proper_origin_behind_branch),
        cmocka_unit_test(take_no_leftover_for_an_origin),
        cmocka_unit_test(find_unfinished_write),
        cmocka_unit_test(find_two_variables),
        cmocka_unit_test(rank_constant_order_last),
        cmocka_unit_test(claim_nothing_without_passing),
        cmocka_unit_test(unify_names),
        cmocka_unit_test(leave_out_the_failure_itself),
        cmocka_unit_test(count_lost_as_unknown),
        cmocka_unit_test(take_values_of_any_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
