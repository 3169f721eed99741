/* SPDX-License-Identifier: MIT */
/* The comparison points of passing runs: which accesses are compared with a failure, and when. */
#include "tests/unit/sketch/made_runs.h"

static void unify(struct fixture *f)
{
    assert_int_equal(etch_runs_unify(&f->names, f->runs, f->n), 0);
    find(f);
}

static const struct etch_predictor *find_pattern(const struct fixture *f, const char *pattern, uint32_t first)
{
    for (size_t i = 0; i < f->found.all.n; i++)
        if (strcmp(f->found.all.v[i].pattern, pattern) == 0 && f->found.all.v[i].places[0] == first &&
            !f->found.all.v[i].ever)
            return &f->found.all.v[i];
    return NULL;
}

/* How far a run came is no cause: the passing one went through the same on its way. */
static void ask_when_it_could_have_failed(void **state)
{
    const struct made bad[] = {{0, MAKE, 'W', 7, 100, 0, 0}, {1, USE, 'R', 7, 300, 0, 1}};
    const struct made good[] = {{0, MAKE, 'W', 7, 100, 0, 0},
                                {1, USE, 'R', 7, 300, 0, 1},
                                {1, CLEAR, 'W', 0, 500, 0, 1},
                                {1, USE, 'R', 0, 700, 0, 1}};
    struct fixture f = {.n = 2};
    const struct etch_predictor *p;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, bad, 2);
    f.runs[1] = make(false, 2, good, 4);
    unify(&f);
    p = find_pattern(&f, "WR", MAKE);
    assert_non_null(p);
    assert_int_equal(p->passing_true, 1);
    release(&f);
}

/* A passing run that never came there is asked for any time at all. */
static void ask_at_any_time_who_never_came(void **state)
{
    const struct made bad[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {1, CHECK_IT, 'R', 7, 300, 0, 1}, {1, USE, 'R', 7, 400, 0, 1}};
    const struct made good[] = {{0, MAKE, 'W', 7, 100, 0, 0},
                                {1, CHECK_IT, 'R', 7, 300, 0, 1},
                                {1, CLEAR, 'W', 0, 500, 0, 1},
                                {1, CHECK_IT, 'R', 0, 700, 0, 1}};
    struct fixture f = {.n = 2};

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, bad, 3);
    f.runs[1] = make(false, 2, good, 4);
    unify(&f);
    for (size_t i = 0; i < f.found.all.n; i++) {
        const struct etch_predictor *p = &f.found.all.v[i];

        if (p->kind == ETCH_PREDICTOR_ORDER && p->places[0] == MAKE && p->places[1] == CHECK_IT)
            assert_int_equal(p->passing_true, 1);
    }
    release(&f);
}

/* Both read, both write, and nothing proves which wrote last: an update is lost either way. */
static void lose_an_update_either_way(void **state)
{
    const struct made both[] = {{0, CHECK_IT, 'R', 0, 100, 0, 0},
                                {1, CHECK_IT, 'R', 0, 110, 0, 1},
                                {0, USE, 'W', 1, 500, 300, 0},
                                {1, USE, 'W', 1, 505, 300, 1}};
    const struct made one_each[] = {{0, CHECK_IT, 'R', 0, 100, 0, 0},
                                    {0, USE, 'W', 1, 200, 0, 0},
                                    {1, CHECK_IT, 'R', 1, 300, 0, 1},
                                    {1, USE, 'W', 2, 400, 0, 1}};
    struct fixture f = {.n = 2};
    const struct etch_predictor *p;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, both, 4);
    f.runs[1] = make(false, 2, one_each, 4);
    unify(&f);
    p = find_pattern(&f, "RWW", CHECK_IT);
    assert_non_null(p);
    assert_int_equal(p->failing_true, 1);
    assert_int_equal(p->passing_true, 0);
    release(&f);
}

/* Another statement than the last reader's: then the order of the writes does count. */
static void claim_no_lost_update_of_others(void **state)
{
    const struct made both[] = {{0, CHECK_IT, 'R', 0, 100, 0, 0},
                                {1, OTHER, 'R', 0, 110, 0, 1},
                                {0, USE, 'W', 1, 500, 300, 0},
                                {1, USE, 'W', 1, 505, 300, 1}};
    struct fixture f = {.n = 1};

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, both, 4);
    unify(&f);
    assert_null(find_pattern(&f, "RWW", CHECK_IT));
    assert_null(find_pattern(&f, "RWW", OTHER));
    release(&f);
}

/* A slot is filled before each read; once it was not. */
static void find_unfilled(void **state)
{
    const struct made bad[] = {{0, CLEAR, 'W', 1, 100, 0, 0}, {1, USE, 'R', 1, 200, 0, 1}, {1, USE, 'R', 1, 400, 0, 1}};
    const struct made good[] = {{0, CLEAR, 'W', 1, 100, 0, 0},
                                {1, USE, 'R', 1, 200, 0, 1},
                                {0, CLEAR, 'W', 2, 300, 0, 0},
                                {1, USE, 'R', 2, 400, 0, 1}};
    struct fixture f = {.n = 2};
    const struct etch_predictor *top;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, bad, 3);
    f.runs[1] = make(false, 2, good, 4);
    unify(&f);
    top = &f.found.all.v[0];
    assert_int_equal(top->kind, ETCH_PREDICTOR_ORDER);
    assert_true(top->refill);
    assert_int_equal(top->places[0], USE);
    assert_int_equal(top->places[1], CLEAR);
    assert_int_equal(top->passing_true, 0);
    assert_int_equal(top->failing_true, 1);
    release(&f);
}

/* A signal handler came between two reads of its own thread. */
static void find_handler_between(void **state)
{
    const struct made bad[] = {
        {1, CHECK_IT, 'R', 7, 100, 0, 1}, {1, CLEAR, 'W', 0, 300, 0, 1}, {1, USE, 'R', 0, 500, 0, 1}};
    const struct made good[] = {
        {1, CHECK_IT, 'R', 7, 100, 0, 1}, {1, USE, 'R', 7, 300, 0, 1}, {1, CLEAR, 'W', 0, 500, 0, 1}};

    (void)state;
    for (int handler = 0; handler < 2; handler++) {
        struct fixture f = {.n = 2};
        const struct etch_predictor *p;

        name_places(&f.names);
        f.runs[0] = make(true, 1, bad, 3);
        f.runs[1] = make(false, 2, good, 3);
        f.runs[0]->accesses.v[1].handler = f.runs[1]->accesses.v[2].handler = handler;
        unify(&f);
        p = best_of(&f, ETCH_PREDICTOR_ATOMICITY);
        assert_true(!p == !handler);
        if (p) {
            assert_string_equal(p->pattern, "RWR");
            assert_true(p->f == 1);
        }
        release(&f);
    }
}

/* The crash tells that the pointer was nothing; who got past the statement had one. */
static void take_the_crash_for_a_value(void **state)
{
    const struct made at[] = {{1, USE, 'R', 0, 500, 0, 1}};
    struct fixture f = {.n = 2};
    const struct etch_predictor *top;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, at, 1);
    f.runs[1] = make(false, 2, at, 1);
    f.runs[0]->accesses.v[0].crash = true;
    f.runs[0]->accesses.v[0].object = ETCH_NOWHERE;
    f.runs[0]->accesses.v[0].watch = ETCH_NOWHERE;
    f.runs[1]->accesses.n = 0; /* it went through, and nobody watched */
    f.runs[0]->null_operand = 0;
    f.runs[1]->null_operand = ETCH_NOWHERE;
    unify(&f);
    top = &f.found.all.v[0];
    assert_int_equal(top->kind, ETCH_PREDICTOR_VALUE);
    assert_int_equal(top->test, ETCH_VALUE_ZERO);
    assert_int_equal(top->passing, 1);
    assert_int_equal(top->passing_true, 0);
    assert_true(top->f == 1);
    release(&f);
}

/* What one statement writes twice was not meant to be one step. */
static void take_no_iterations_for_one_step(void **state)
{
    const struct made good[] = {{1, OTHER, 'W', 2, 100, 0, 1}, {1, USE, 'R', 2, 300, 0, 1}};

    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        const struct made bad[] = {
            {0, MAKE, 'W', 1, 100, 0, 0}, {1, USE, 'R', 1, 300, 0, 1}, {0, twice ? MAKE : CLEAR, 'W', 1, 500, 0, 0}};
        struct fixture f = {.n = 2};
        const struct etch_predictor *found;

        name_places(&f.names);
        f.runs[0] = make(true, 1, bad, 3);
        f.runs[1] = make(false, 2, good, 2);
        find(&f);
        found = best_of(&f, ETCH_PREDICTOR_ATOMICITY);
        assert_non_null(found);
        assert_string_equal(found->pattern, "WRW");
        assert_int_equal(found->guarded, !twice);
        release(&f);
    }
}

static void in_call(struct etch_run *run, size_t access, uint32_t call)
{
    run->accesses.v[access].call = call;
}

/* One call writes two variables, another reads both in between: also where it happened long before the end. */
static void find_torn_calls(void **state)
{
    const struct made bad[] = {{0, MAKE, 'W', 1, 100, 0, 0},     {1, CHECK_IT, 'R', 1, 200, 0, 1},
                               {1, USE, 'R', 5, 300, 0, 1},      {0, CLEAR, 'W', 6, 400, 0, 0},
                               {1, CHECK_IT, 'R', 1, 500, 0, 1}, {1, USE, 'R', 6, 600, 0, 1}};
    const struct made good[] = {{0, MAKE, 'W', 1, 100, 0, 0},
                                {0, CLEAR, 'W', 6, 200, 0, 0},
                                {1, CHECK_IT, 'R', 1, 300, 0, 1},
                                {1, USE, 'R', 6, 400, 0, 1}};
    struct fixture f = {.n = 2};
    const struct etch_predictor *found = NULL;

    (void)state;
    name_places(&f.names);
    assert_int_equal(etch_names_variable(&f.names, "y"), 1);
    f.runs[0] = make(true, 1, bad, 6);
    f.runs[1] = make(false, 2, good, 4);
    for (size_t i = 0; i < 2; i++) {
        of_second_variable(f.runs[i], USE);
        of_second_variable(f.runs[i], CLEAR);
        assert_true(etch_array_push(&f.runs[i]->watched_operands, 1));
    }
    for (size_t i = 0; i < 6; i++)
        in_call(f.runs[0], i, f.runs[0]->accesses.v[i].thread == 0 ? 1 : i < 3 ? 2 : 3);
    for (size_t i = 0; i < 4; i++)
        in_call(f.runs[1], i, f.runs[1]->accesses.v[i].thread == 0 ? 1 : 2);
    unify(&f);
    for (size_t i = 0; i < f.found.all.n; i++)
        if (f.found.all.v[i].torn)
            found = &f.found.all.v[i];
    assert_non_null(found);
    assert_int_equal(found->places[0], MAKE);
    assert_int_equal(found->places[3], CLEAR);
    assert_true(found->f == 1);
    release(&f);
}

/* The same in a run that failed before the writing call came to its second write: torn for certain, unless that call
 * may have come to it unseen. An access group belongs to one call, also where nobody knows which of the statement's
 * visits it was. */
static void find_torn_cut_short(void **state)
{
    const struct made cut[] = {{1, CHECK_IT, 'R', 0, 50, 0, 1},
                               {0, MAKE, 'W', 1, 100, 0, 0},
                               {1, CHECK_IT, 'R', 1, 200, 0, 1},
                               {1, CHECK_IT, 'R', 1, 300, 0, 1},
                               {1, USE, 'R', 5, 400, 0, 1}};
    const uint32_t calls[] = {2, 1, 2, 3, 3};
    const struct etch_predictor p = {.kind = ETCH_PREDICTOR_ATOMICITY,
                                     .n_places = 4,
                                     .places = {MAKE, CHECK_IT, USE, CLEAR},
                                     .second = 1,
                                     .pattern = "WRRW",
                                     .torn = true};
    const struct etch_run_visit later = {.thread = 0, .place = CLEAR, .count = 1, .seq = 9};
    struct fixture f = {.n = 1};
    uint32_t at[ETCH_PREDICTOR_ACCESSES];

    (void)state;
    name_places(&f.names);
    assert_int_equal(etch_names_variable(&f.names, "y"), 1);
    f.runs[0] = make(true, 1, cut, 5);
    of_second_variable(f.runs[0], USE);
    assert_true(etch_array_push(&f.runs[0]->watched_operands, 1));
    for (size_t i = 0; i < 5; i++) {
        in_call(f.runs[0], i, calls[i]);
        f.runs[0]->accesses.v[i].nth = 0;
    }
    unify(&f);
    assert_int_equal(etch_predictor_holds(&p, &f.names, f.runs[0]), ETCH_TRUE);
    assert_int_equal(etch_predictor_instance(&p, f.runs[0], at), 3);
    assert_int_equal(at[1], 3);
    assert_true(etch_array_push(&f.runs[0]->visits, later));
    assert_int_equal(etch_run_index(f.runs[0]), 0);
    assert_int_equal(etch_predictor_holds(&p, &f.names, f.runs[0]), ETCH_UNKNOWN);
    assert_int_equal(etch_predictor_instance(&p, f.runs[0], at), 0);
    release(&f);
}

/* A debug register is set at the first object that comes by. */
static void watch_at_site(struct etch_run *run)
{
    assert_true(etch_array_push(&run->sited_operands, 0));
    assert_true(etch_array_push(&run->sited, 0));
}

static const struct etch_predictor *order_of(const struct fixture *f, const char *pattern, uint32_t first,
                                             uint32_t second)
{
    for (size_t i = 0; i < f->found.all.n; i++) {
        const struct etch_predictor *p = &f->found.all.v[i];

        if (p->kind == ETCH_PREDICTOR_ORDER && !p->ever && !p->refill && strcmp(p->pattern, pattern) == 0 &&
            p->places[0] == first && p->places[1] == second)
            return p;
    }
    return NULL;
}

/* It failed in an access group of which nothing was seen: what was seen of an earlier one does not say that the order
 * was another. */
static void leave_open_what_it_failed_with(void **state)
{
    const struct made first[] = {{0, MAKE, 'W', 7, 100, 0, 0}, {1, USE, 'R', 7, 300, 0, 1}};
    const struct etch_run_visit unseen = {.thread = 0, .place = CLEAR, .count = 1, .seq = 9};
    struct fixture f = {.n = 5};
    const struct etch_predictor *p;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    f.runs[2] = failing_order(3);
    f.runs[3] = passing_order(4);
    f.runs[4] = make(true, 5, first, 2);
    for (size_t i = 0; i < f.n; i++) {
        f.runs[i]->names = &f.names;
        watch_at_site(f.runs[i]);
    }
    f.runs[4]->visits.v[1].count = 2;
    assert_true(etch_array_push(&f.runs[4]->visits, unseen));
    find(&f);
    p = order_of(&f, "WR", CLEAR, USE);
    assert_non_null(p);
    assert_int_equal(p->failing_true, 2);
    assert_int_equal(p->failing, 2);
    assert_int_equal(p->unknown, 1);
    assert_int_equal(p->passing, 2);
    release(&f);
}

/* A register that is set in the very execution that fails has not seen who wrote before. */
static void leave_open_what_was_before_the_register(void **state)
{
    const struct made late[] = {{1, USE, 'R', 0, 500, 0, 1}};
    const struct etch_run_visit unseen = {.thread = 0, .place = CLEAR, .count = 1, .seq = 9};
    struct fixture f = {.n = 4};
    const struct etch_predictor *p;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    f.runs[2] = make(true, 3, late, 1);
    f.runs[3] = passing_order(4);
    for (size_t i = 0; i < f.n; i++) {
        f.runs[i]->names = &f.names;
        watch_at_site(f.runs[i]);
    }
    assert_true(etch_array_push(&f.runs[2]->visits, unseen));
    find(&f);
    p = order_of(&f, "WR", CLEAR, USE);
    assert_non_null(p);
    assert_int_equal(p->failing_true, 1);
    assert_int_equal(p->failing, 1);
    assert_int_equal(p->unknown, 1);
    release(&f);
}

/* That nobody saw the write before a read does not say that it had not been made: the register was set later. */
static void claim_no_read_before_an_unseen_write(void **state)
{
    const struct made early[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {1, USE, 'R', 7, 300, 0, 1}, {0, CLEAR, 'W', 0, 500, 0, 0}};
    const struct made late[] = {{1, USE, 'R', 0, 500, 0, 1}};
    const struct etch_run_visit unseen = {.thread = 0, .place = CLEAR, .count = 1, .seq = 9};
    struct fixture f = {.n = 3};
    const struct etch_predictor *p;

    (void)state;
    name_places(&f.names);
    f.runs[0] = make(true, 1, early, 3);
    f.runs[1] = make(false, 2, late, 1);
    f.runs[2] = make(false, 3, late, 1);
    for (size_t i = 0; i < f.n; i++) {
        f.runs[i]->names = &f.names;
        watch_at_site(f.runs[i]);
    }
    assert_true(etch_array_push(&f.runs[1]->visits, unseen));
    find(&f);
    p = order_of(&f, "RW", USE, CLEAR);
    assert_non_null(p);
    assert_int_equal(p->unknown, 1);
    assert_int_equal(p->passing, 1); /* where the write did not run at all */
    assert_int_equal(p->passing_true, 1);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ask_when_it_could_have_failed),
        cmocka_unit_test(ask_at_any_time_who_never_came),
        cmocka_unit_test(lose_an_update_either_way),
        cmocka_unit_test(claim_no_lost_update_of_others),
        cmocka_unit_test(find_unfilled),
        cmocka_unit_test(find_handler_between),
        cmocka_unit_test(take_the_crash_for_a_value),
        cmocka_unit_test(take_no_iterations_for_one_step),
        cmocka_unit_test(find_torn_calls),
        cmocka_unit_test(find_torn_cut_short),
        cmocka_unit_test(leave_open_what_it_failed_with),
        cmocka_unit_test(leave_open_what_was_before_the_register),
        cmocka_unit_test(claim_no_read_before_an_unseen_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
