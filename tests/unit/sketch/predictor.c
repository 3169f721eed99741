/* SPDX-License-Identifier: MIT */
/* Predictors over hand-made runs: which are found, how they are counted, and what stays unknown. */
#include "sketch/predictor.h"
#include "sketch/compose.h"
#include "sketch/predict/access_group.h"
#include "sketch/runs/order.h"

#include "decoder/recording.h"

#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

/* Places, by their number: line 10 + number of a.c; all of the slice, as far from the failure as their number says. */
enum { MAKE, CHECK_IT, CLEAR, USE, OTHER, PLACES };

struct made {
    uint32_t thread, place;
    char how; /* R, W; U: both */
    uint64_t value;
    uint64_t at; /* TSC */
    uint64_t since;
    uint32_t cpu;
};

static void name_places(struct etch_names *names)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        assert_int_equal(etch_names_place(names, "a.c", 10 + i, "f"), i);
        names->places.v[i].statement = i + 1;
        names->places.v[i].distance = USE > i ? USE - i : 0;
    }
    assert_int_equal(etch_names_variable(names, "x"), 0);
}

/* Two CPUs whose clocks are within 10 cycles of each other. */
static void order(struct etch_run *run, const struct made *made, size_t n)
{
    struct etch_recording recording = {0};
    Etch__Clock clock = ETCH__CLOCK__INIT, *clocks[] = {&clock};
    Etch__Skew skew = ETCH__SKEW__INIT, *skews[] = {&skew};
    struct etch_error err;

    clock.phase = ETCH__CLOCK_PHASE__CLOCK_BEFORE;
    clock.constant = clock.nonstop = true;
    skew.cpu = 1;
    skew.lo = -10;
    skew.hi = 10;
    skew.method = ETCH__SKEW_METHOD__SKEW_BOUNDS;
    clock.skews = skews;
    clock.n_skews = 1;
    recording.clocks.v = clocks;
    recording.clocks.n = 1;
    for (size_t i = 0; i < n; i++) {
        Etch__Access a = ETCH__ACCESS__INIT;

        a.tsc = made[i].at;
        a.since = made[i].since ? made[i].since : made[i].at - 5;
        a.cpu = made[i].cpu;
        a.tid = 100 + made[i].thread;
        a.write = made[i].how != 'R';
        a.read = made[i].how != 'W';
        a.watch = 1;
        assert_true(etch_array_push(&recording.accesses, a));
    }
    assert_int_equal(etch_run_order_build(&run->order, &recording, NULL, &err), 0);
    etch_array_free(&recording.accesses);
}

static struct etch_run *make(bool failing, uint64_t key, const struct made *made, size_t n)
{
    struct etch_run *run = calloc(1, sizeof(*run));
    uint64_t seen[2][PLACES] = {0};

    assert_non_null(run);
    run->name = strdup("run");
    run->key = key;
    run->failing = failing;
    run->flow = true;
    run->failing_place = failing ? USE : ETCH_NOWHERE;
    run->failing_thread = failing ? 1 : ETCH_NOWHERE;
    run->bucket = failing ? strdup("signal 11 a.c:13 f") : NULL;
    if (failing) {
        run->failure = malloc(sizeof(*run->failure));
        etch__failure__init(run->failure);
        run->failure->kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
        run->failure->signal = 11;
    }
    for (uint32_t t = 0; t < 2; t++) {
        struct etch_run_thread thread = {
            .tid = 100 + t, .parent = ETCH_NOWHERE, .wait_place = ETCH_NOWHERE, .made_at = ETCH_NOWHERE};

        thread.name = strdup(t ? "worker" : "main");
        assert_true(etch_array_push(&run->threads, thread));
    }
    assert_true(etch_array_push(&run->watched_operands, 0));
    assert_true(etch_array_push(&run->watched, 0));
    if (n)
        order(run, made, n);
    for (size_t i = 0; i < n; i++) {
        struct etch_run_access a = {.thread = made[i].thread,
                                    .place = made[i].place,
                                    .object = 1,
                                    .nth = ++seen[made[i].thread][made[i].place],
                                    .seq = i,
                                    .value = made[i].value,
                                    .hi = made[i].at,
                                    .lo = made[i].at - 5,
                                    .size = 8,
                                    .read = made[i].how != 'W',
                                    .write = made[i].how != 'R',
                                    .known = true,
                                    .event = etch_run_order_event(run->order, i, 0)};
        struct etch_run_visit v = {
            .thread = made[i].thread, .place = made[i].place, .count = a.nth, .seq = i, .lo = a.lo, .hi = a.hi};

        assert_true(etch_array_push(&run->accesses, a));
        assert_true(etch_array_push(&run->visits, v));
    }
    return run;
}

/* The last argument of each: thread, place, how, value, time. */
static struct etch_run *failing_order(uint64_t key)
{
    const struct made made[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {0, CLEAR, 'W', 0, 300, 0, 0}, {1, USE, 'R', 0, 500, 0, 1}};

    return make(true, key, made, 3);
}

static struct etch_run *passing_order(uint64_t key)
{
    const struct made made[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {1, USE, 'R', 7, 300, 0, 1}, {0, CLEAR, 'W', 0, 500, 0, 0}};

    return make(false, key, made, 3);
}

struct fixture {
    struct etch_names names;
    struct etch_run *runs[8];
    size_t n;
    struct etch_predictors found;
};

static void find(struct fixture *f)
{
    assert_int_equal(etch_predictors_find(&f->found, &f->names, (const struct etch_run *const *)f->runs, f->n), 0);
}

static void release(struct fixture *f)
{
    for (size_t i = 0; i < f->n; i++)
        etch_run_free(f->runs[i]);
    etch_predictors_release(&f->found);
    etch_names_release(&f->names);
}

static const struct etch_predictor *best_of(const struct fixture *f, enum etch_predictor_kind kind)
{
    for (size_t i = 0; i < f->found.all.n; i++)
        if (f->found.all.v[i].kind == kind)
            return &f->found.all.v[i];
    return NULL;
}

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

static void branch(struct etch_run *run, bool taken)
{
    const struct etch_run_branch b = {.place = CHECK_IT, .address = 64, .taken = taken, .to = USE};

    assert_true(etch_array_push(&run->branches, b));
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

static void of_second_variable(struct etch_run *run, uint32_t place)
{
    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place) {
            run->accesses.v[i].object = 2;
            run->accesses.v[i].operand = run->accesses.v[i].watch = run->accesses.v[i].variable = 1;
        }
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
static void rank_given_order_last(void **state)
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

static void visit(struct etch_run *run, uint32_t place, uint64_t count, uint64_t seq)
{
    const struct etch_run_visit v = {.thread = 1, .place = place, .count = count, .seq = seq, .hi = UINT64_MAX};

    assert_true(etch_array_push(&run->visits, v));
    assert_true(etch_array_push(&run->history, v));
}

/* A branch is shown when it went the way that the predictor speaks of, though it ran again later. */
static void compose_the_turn_of_a_branch(void **state)
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

/* ---- What passing runs are asked, and when ---- */

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
static void take_no_turns_for_one_step(void **state)
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
 * may have come to it unseen. A turn belongs to one call, also where nobody knows which of the statement's visits it
 * was. */
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

/* It failed in a turn of which nothing was seen: what was seen of an earlier one does not say that the order was
 * another. */
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

/* A register that is set in the very turn that fails has not seen who wrote before. */
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
        cmocka_unit_test(rank_given_order_last),
        cmocka_unit_test(claim_nothing_without_passing),
        cmocka_unit_test(unify_names),
        cmocka_unit_test(leave_out_the_failure_itself),
        cmocka_unit_test(count_lost_as_unknown),
        cmocka_unit_test(compose_in_any_order),
        cmocka_unit_test(compose_the_turn_of_a_branch),
        cmocka_unit_test(compose_without_passing_runs),
        cmocka_unit_test(keep_two_bugs_apart),
        cmocka_unit_test(ask_when_it_could_have_failed),
        cmocka_unit_test(ask_at_any_time_who_never_came),
        cmocka_unit_test(lose_an_update_either_way),
        cmocka_unit_test(claim_no_lost_update_of_others),
        cmocka_unit_test(find_unfilled),
        cmocka_unit_test(find_handler_between),
        cmocka_unit_test(take_the_crash_for_a_value),
        cmocka_unit_test(leave_open_what_it_failed_with),
        cmocka_unit_test(leave_open_what_was_before_the_register),
        cmocka_unit_test(claim_no_read_before_an_unseen_write),
        cmocka_unit_test(find_torn_calls),
        cmocka_unit_test(find_torn_cut_short),
        cmocka_unit_test(take_no_turns_for_one_step),
        cmocka_unit_test(refuse_a_failure_that_no_run_has),
        cmocka_unit_test(take_values_of_any_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
