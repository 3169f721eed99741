/* SPDX-License-Identifier: MIT */
/* Sketches composed of hand-made runs. */
#include "tests/unit/sketch/made_runs.h"

static Etch__Sketch *compose_some(struct fixture *f, bool backwards, bool all)
{
    Etch__Slice slice = ETCH__SLICE__INIT;
    struct etch_compose_options options = {.slice = &slice, .all = all};
    struct etch_run *runs[8];
    Etch__Statement statements[PLACES], *list[PLACES];
    Etch__Place place = ETCH__PLACE__INIT;
    struct etch_error err;
    Etch__Sketch *sketch;

    place.file = "a.c";
    place.function = "f";
    for (size_t i = 0; i < PLACES; i++) {
        etch__statement__init(&statements[i]);
        statements[i].id = (uint32_t)i;
        statements[i].place = &place;
        list[i] = &statements[i];
    }
    slice.statements = list;
    slice.n_statements = PLACES;
    for (size_t i = 0; i < f->n; i++)
        runs[i] = f->runs[backwards ? f->n - 1 - i : i];
    sketch = etch_compose(&f->names, runs, f->n, &options, &err);
    return sketch;
}

static Etch__Sketch *compose(struct fixture *f, bool backwards)
{
    return compose_some(f, backwards, false);
}

static void compose_in_any_order(void **state)
{
    struct fixture f = {.n = 4};
    Etch__Sketch *a, *b;
    uint8_t *x, *y;
    size_t n;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    f.runs[2] = failing_order(3);
    f.runs[3] = passing_order(4);
    a = compose(&f, false);
    b = compose(&f, true);
    assert_non_null(a);
    assert_non_null(b);
    n = etch__sketch__get_packed_size(a);
    assert_int_equal(n, etch__sketch__get_packed_size(b));
    x = malloc(n);
    y = malloc(n);
    etch__sketch__pack(a, x);
    etch__sketch__pack(b, y);
    assert_memory_equal(x, y, n);
    assert_true(a->compared);
    assert_int_equal(a->failing_runs, 2);
    assert_int_equal(a->n_steps, 3); /* made, cleared, used */
    assert_int_equal(a->steps[0]->place->line, 10 + MAKE);
    assert_int_equal(a->steps[1]->place->line, 10 + CLEAR);
    assert_int_equal(a->steps[2]->place->line, 10 + USE);
    assert_true(a->steps[2]->failing);
    assert_int_equal(a->n_orders, 1);
    assert_true(a->orders[0]->predictor);
    free(x);
    free(y);
    etch__sketch__free_unpacked(a, NULL);
    etch__sketch__free_unpacked(b, NULL);
    release(&f);
}

/* Without control flow every access is a step: 40 in turn by two threads, and the failure. */
static void compose_groups_repeats(void **state)
{
    struct fixture f = {.n = 1};
    struct made made[41];
    uint64_t counted = 0, last_other = 0;
    Etch__Sketch *sketch;
    unsigned failing = 0;

    (void)state;
    name_places(&f.names);
    for (uint32_t i = 0; i < 40; i++)
        made[i] = (struct made){.thread = i % 2, .place = OTHER, .how = 'W', .value = i, .at = 1000 + 100 * i};
    made[40] = (struct made){.thread = 1, .place = USE, .how = 'R', .value = 39, .at = 9000};
    f.runs[0] = make(true, 1, made, 41);
    f.runs[0]->flow = false;
    f.runs[0]->visits.n = 0; /* without control flow, one for all visits of a statement */
    for (uint32_t i = 0; i < 3; i++) {
        const struct etch_run_visit v = {.thread = i != 0,
                                         .place = i < 2 ? OTHER : USE,
                                         .count = i < 2 ? 20 : 1,
                                         .seq = 38 + i,
                                         .lo = 4800 + 100 * i,
                                         .hi = i < 2 ? 4805 + 100 * i : 9000};

        assert_true(etch_array_push(&f.runs[0]->visits, v));
    }
    sketch = compose_some(&f, false, true);
    assert_non_null(sketch);
    for (size_t i = 0; i < sketch->n_steps; i++) {
        const Etch__SketchStep *step = sketch->steps[i];

        failing += step->failing ? 1 : 0;
        if (step->place->line != 10 + OTHER)
            continue;
        counted += step->count;
        assert_int_equal(step->n_values, 1);
        last_other = step->values[0]->value > last_other ? step->values[0]->value : last_other;
    }
    assert_int_equal(counted, 40);     /* none is lost */
    assert_true(sketch->n_steps <= 7); /* three rows for each thread */
    assert_int_equal(last_other, 39);  /* the newest are shown, each with its own value */
    assert_int_equal(failing, 1);      /* and one row fails */
    assert_int_equal(sketch->steps[sketch->n_steps - 1]->place->line, 10 + USE);
    assert_int_equal(sketch->steps[sketch->n_steps - 1]->values[0]->origin_case, ETCH__SKETCH_VALUE__ORIGIN_FROM);
    assert_int_equal(sketch->steps[sketch->steps[sketch->n_steps - 1]->values[0]->from]->values[0]->value, 39);
    etch__sketch__free_unpacked(sketch, NULL);
    release(&f);
}

static void visit(struct etch_run *run, uint32_t place, uint64_t count, uint64_t seq)
{
    const struct etch_run_visit v = {.thread = 1, .place = place, .count = count, .seq = seq, .hi = UINT64_MAX};

    assert_true(etch_array_push(&run->visits, v));
    assert_true(etch_array_push(&run->history, v));
}

/* A branch is shown when it went the way that the predictor speaks of, though it ran again later. */
static void compose_the_visit_of_a_branch(void **state)
{
    const struct etch_run_visit first = {.thread = 1, .place = CHECK_IT, .count = 1, .seq = 3, .hi = UINT64_MAX};
    struct fixture f = {.n = 2};
    Etch__Sketch *sketch;
    size_t at[PLACES] = {0};

    (void)state;
    name_places(&f.names);
    for (size_t i = 0; i < 2; i++) {
        f.runs[i] = make(i == 0, i + 1, NULL, 0);
        if (i == 0)
            visit(f.runs[i], OTHER, 1, 4);
        visit(f.runs[i], CHECK_IT, 2, 9);
        visit(f.runs[i], USE, 1, 12);
        assert_true(etch_array_push(&f.runs[i]->history, first));
        branch(f.runs[i], i == 0);
        f.runs[i]->branches.v[0].to = i == 0 ? OTHER : USE;
    }
    sketch = compose_some(&f, false, true);
    assert_non_null(sketch);
    assert_string_equal(sketch->predictors[0]->kind, "branch");
    for (size_t i = 0; i < sketch->n_steps; i++)
        at[sketch->steps[i]->place->line - 10] = i + 1;
    assert_true(at[CHECK_IT] && at[OTHER]);
    assert_true(at[CHECK_IT] < at[OTHER]);
    etch__sketch__free_unpacked(sketch, NULL);
    release(&f);
}

static void compose_without_passing_runs(void **state)
{
    struct fixture f = {.n = 1};
    Etch__Sketch *sketch;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    sketch = compose(&f, false);
    assert_non_null(sketch);
    assert_false(sketch->compared);
    assert_int_equal(sketch->n_predictors, 0);
    assert_true(sketch->n_steps > 0);
    etch__sketch__free_unpacked(sketch, NULL);
    release(&f);
}

static void keep_two_bugs_apart(void **state)
{
    struct fixture f = {.n = 4};
    Etch__Sketch *sketch;

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = failing_order(2);
    f.runs[2] = failing_order(3);
    f.runs[3] = passing_order(4);
    free(f.runs[1]->bucket);
    f.runs[1]->bucket = strdup("signal 6 b.c:1 g");
    sketch = compose(&f, false);
    assert_non_null(sketch);
    assert_int_equal(sketch->failing_runs, 2);
    assert_int_equal(sketch->other_failures, 1);
    etch__sketch__free_unpacked(sketch, NULL);
    release(&f);
}

/* A failure that no run has is an error in words. */
static void refuse_a_failure_that_no_run_has(void **state)
{
    struct fixture f = {.n = 2};
    struct etch_compose_options options = {.bucket = "SIGSEGV, f(int*) a.c:13"};
    struct etch_error err = {0};

    (void)state;
    name_places(&f.names);
    f.runs[0] = failing_order(1);
    f.runs[1] = passing_order(2);
    assert_null(etch_compose(&f.names, f.runs, f.n, &options, &err));
    assert_non_null(strstr(err.what, "SIGSEGV, f(int*) a.c:13"));
    memset(&err, 0, sizeof(err));
    options.bucket = NULL;
    assert_null(etch_compose(&f.names, f.runs + 1, 1, &options, &err));
    assert_true(err.what[0]);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compose_in_any_order),          cmocka_unit_test(compose_groups_repeats),
        cmocka_unit_test(compose_the_visit_of_a_branch), cmocka_unit_test(compose_without_passing_runs),
        cmocka_unit_test(keep_two_bugs_apart),           cmocka_unit_test(refuse_a_failure_that_no_run_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
