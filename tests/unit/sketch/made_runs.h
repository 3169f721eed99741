/* SPDX-License-Identifier: MIT */
/* Hand-made runs of one bug with their accesses, for the tests of predictors and of sketches. */
#ifndef ETCH_TESTS_UNIT_SKETCH_MADE_RUNS_H
#define ETCH_TESTS_UNIT_SKETCH_MADE_RUNS_H

#include "decoder/recording.h"
#include "sketch/compose.h"
#include "sketch/predict/access_group.h"
#include "sketch/predictor.h"
#include "sketch/runs/order.h"

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

static inline void name_places(struct etch_names *names)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        assert_int_equal(etch_names_place(names, "a.c", 10 + i, "f"), i);
        names->places.v[i].statement = i + 1;
        names->places.v[i].distance = USE > i ? USE - i : 0;
    }
    assert_int_equal(etch_names_variable(names, "x"), 0);
}

/* Two CPUs whose clocks are within 10 cycles of each other. */
static inline void order(struct etch_run *run, const struct made *made, size_t n)
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

static inline struct etch_run *make(bool failing, uint64_t key, const struct made *made, size_t n)
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
static inline struct etch_run *failing_order(uint64_t key)
{
    const struct made made[] = {
        {0, MAKE, 'W', 7, 100, 0, 0}, {0, CLEAR, 'W', 0, 300, 0, 0}, {1, USE, 'R', 0, 500, 0, 1}};

    return make(true, key, made, 3);
}

static inline struct etch_run *passing_order(uint64_t key)
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

static inline void find(struct fixture *f)
{
    assert_int_equal(etch_predictors_find(&f->found, &f->names, (const struct etch_run *const *)f->runs, f->n), 0);
}

static inline void release(struct fixture *f)
{
    for (size_t i = 0; i < f->n; i++)
        etch_run_free(f->runs[i]);
    etch_predictors_release(&f->found);
    etch_names_release(&f->names);
}

static inline const struct etch_predictor *best_of(const struct fixture *f, enum etch_predictor_kind kind)
{
    for (size_t i = 0; i < f->found.all.n; i++)
        if (f->found.all.v[i].kind == kind)
            return &f->found.all.v[i];
    return NULL;
}

static inline void branch(struct etch_run *run, bool taken)
{
    const struct etch_run_branch b = {.place = CHECK_IT, .address = 64, .taken = taken, .to = USE};

    assert_true(etch_array_push(&run->branches, b));
}

static inline void of_second_variable(struct etch_run *run, uint32_t place)
{
    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place) {
            run->accesses.v[i].object = 2;
            run->accesses.v[i].operand = run->accesses.v[i].watch = run->accesses.v[i].variable = 1;
        }
}

#endif
