/* SPDX-License-Identifier: MIT */
/* The sentence of a sketch, by kind of cause and of failure. */
#include "sketch/render/sentence.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST 8

/* A sketch on the stack: nothing of it is freed. */
struct made {
    Etch__Sketch sketch;
    Etch__Failure failure;
    Etch__Exception exception;
    Etch__Predictor cause, *causes[1];
    Etch__Place places[MOST], *statements[MOST];
    Etch__SketchThread threads[3], *thread_list[3];
    Etch__SketchStep steps[MOST], *step_list[MOST];
    Etch__SketchValue values[MOST], *value_list[MOST];
    Etch__SketchVariable variable, *variables[1];
    uint32_t first[1];
    char text[2048];
};

static void begin(struct made *m, const char *kind, const char *pattern)
{
    static char *const names[] = {"main", "worker", "reaper"};

    memset(m, 0, sizeof(*m));
    etch__sketch__init(&m->sketch);
    etch__failure__init(&m->failure);
    etch__exception__init(&m->exception);
    etch__predictor__init(&m->cause);
    m->causes[0] = &m->cause;
    m->cause.kind = (char *)(uintptr_t)kind;
    m->cause.pattern = (char *)(uintptr_t)pattern;
    m->cause.variable = "s->quota";
    m->cause.f = 1;
    m->cause.failing = m->cause.failing_true = 7;
    m->cause.passing = 9;
    m->cause.statements = m->statements;
    m->sketch.predictors = m->causes;
    m->sketch.n_predictors = 1;
    m->sketch.failing_runs = 7;
    m->sketch.passing_runs = 9;
    m->sketch.compared = 1;
    m->sketch.failure = &m->failure;
    m->failure.kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    m->failure.signal = SIGSEGV;
    m->sketch.steps = m->step_list;
    m->sketch.threads = m->thread_list;
    m->sketch.n_threads = 3;
    for (size_t i = 0; i < 3; i++) {
        etch__sketch_thread__init(&m->threads[i]);
        m->threads[i].name = names[i];
        m->thread_list[i] = &m->threads[i];
    }
    etch__sketch_variable__init(&m->variable);
    m->variable.name = "s->quota";
    m->variables[0] = &m->variable;
    m->sketch.variables = m->variables;
    m->sketch.n_variables = 1;
}

/* A step, which is also the next statement of the cause if `of`. */
static Etch__SketchStep *step(struct made *m, uint32_t thread, uint32_t line, bool of)
{
    size_t n = m->sketch.n_steps++;
    Etch__SketchStep *t = &m->steps[n];

    assert_true(n < MOST);
    etch__place__init(&m->places[n]);
    m->places[n].file = "/src/cache.c";
    m->places[n].function = "work";
    m->places[n].line = line;
    etch__sketch_step__init(t);
    t->thread = thread;
    t->place = &m->places[n];
    m->step_list[n] = t;
    if (of) {
        m->statements[m->cause.n_statements++] = &m->places[n];
        t->predictors = m->first;
        t->n_predictors = 1;
    }
    return t;
}

static void gives(struct made *m, Etch__SketchStep *t, bool write, uint64_t value, bool deciding)
{
    size_t n = (size_t)(t - m->steps);

    etch__sketch_value__init(&m->values[n]);
    m->values[n].write = write;
    m->values[n].known_case = ETCH__SKETCH_VALUE__KNOWN_VALUE;
    m->values[n].value = value;
    m->values[n].deciding = deciding;
    m->value_list[n] = &m->values[n];
    t->values = &m->value_list[n];
    t->n_values = 1;
}

static void fails(struct made *m, Etch__SketchStep *t)
{
    t->failing = 1;
    m->sketch.failing_place = t->place;
}

static const char *said(struct made *m)
{
    etch_render_sentence(&m->sketch, m->text, sizeof(m->text));
    return m->text;
}

#define SURE " Suspected: so in 7 of 7 failing and 0 of 9 passing runs."

static void test_order(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "order", "WR");
    gives(&m, step(&m, 2, 17, true), true, 0, false);
    fails(&m, step(&m, 1, 45, true));
    assert_string_equal(said(&m), "T3 (reaper) sets s->quota to 0 at line 17 before T2 (worker) reads it at line 45, "
                                  "where it crashes (SIGSEGV)." SURE);
}

static void test_fails_elsewhere(void **state)
{
    struct made m;
    Etch__SketchStep *end;

    (void)state;
    begin(&m, "order", "WW");
    step(&m, 2, 17, true);
    step(&m, 1, 45, true);
    end = step(&m, 0, 60, false);
    gives(&m, end, false, 5, true);
    fails(&m, end);
    m.failure.signal = SIGABRT;
    m.failure.message = "cache.c:60: Assertion `ok' failed.";
    assert_string_equal(said(&m), "T3 (reaper) writes s->quota at line 17 before T2 (worker) writes it at line 45; "
                                  "T1 (main) then fails an assertion at line 60 with s->quota == 5." SURE);
}

/* The same line twice: the access between is by the other thread. */
static void test_atomicity(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "atomicity", "RWW");
    step(&m, 1, 9, true);
    step(&m, 2, 10, true);
    fails(&m, step(&m, 1, 10, true));
    assert_string_equal(said(&m), "T3 (reaper) writes s->quota at line 10 between two uses by T2 (worker), which reads "
                                  "it at line 9 and writes it at line 10, where it crashes (SIGSEGV)." SURE);
}

static void test_value(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "value", "null");
    m.cause.text = "s->quota == 0 at work cache.c:45";
    fails(&m, step(&m, 1, 45, true));
    assert_string_equal(said(&m), "T2 (worker) has s->quota == 0 at line 45, where it crashes (SIGSEGV)." SURE);
}

static void test_value_chain(void **state)
{
    struct made m;
    Etch__Predictor only;
    Etch__Predictor *both[2] = {&m.cause, &only};
    Etch__SketchStep *end;

    (void)state;
    begin(&m, "value", "null");
    m.cause.text = "s->quota == 0 at work cache.c:45";
    gives(&m, step(&m, 2, 17, false), true, 0, false);
    end = step(&m, 1, 45, true);
    gives(&m, end, false, 0, true);
    fails(&m, end);
    end->values[0]->origin_case = ETCH__SKETCH_VALUE__ORIGIN_FROM;
    end->values[0]->from = 0;
    assert_string_equal(said(&m), "T2 (worker) has s->quota == 0 at line 45, where it crashes (SIGSEGV). The value is "
                                  "from T3 (reaper), at line 17." SURE);
    etch__predictor__init(&only);
    only.kind = "executed";
    only.failing = only.failing_true = 7;
    only.passing = 9;
    only.statements = &m.steps[0].place;
    only.n_statements = 1;
    m.sketch.predictors = both;
    m.sketch.n_predictors = 2;
    assert_non_null(strstr(said(&m), "at line 17. Only failing runs execute line 17. Suspected"));
    only.passing_true = 1; /* a passing run did it too */
    assert_null(strstr(said(&m), "Only failing runs"));
    end->values[0]->from = 77; /* no such step */
    assert_null(strstr(said(&m), "The value is from"));
}

static void test_origin_and_branch(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "origin", "W");
    gives(&m, step(&m, 0, 3, true), true, 12, false);
    fails(&m, step(&m, 1, 45, true));
    assert_string_equal(said(&m),
                        "T1 (main) sets s->quota to 12 at line 3, and this is what T2 (worker) finds there at "
                        "line 45, where it crashes (SIGSEGV)." SURE);
    begin(&m, "branch", "taken");
    m.cause.text = "work cache.c:12 goes on to line 34";
    step(&m, 0, 12, true);
    fails(&m, step(&m, 0, 45, false));
    m.failure.kind = ETCH__FAILURE_KIND__FAILURE_EXIT;
    m.failure.code = 3;
    assert_string_equal(said(&m), "T1 (main) goes on to line 34 after the test at line 12, where passing runs go "
                                  "elsewhere; T1 then ends with status 3 at line 45." SURE);
    begin(&m, "branch", "taken after");
    m.cause.text = "work cache.c:12 goes on to line 34 after parse cache.c:7 went on to line 8";
    step(&m, 0, 7, true);
    step(&m, 0, 12, true);
    fails(&m, step(&m, 0, 45, false));
    assert_string_equal(said(&m), "T1 (main) decides differently than in passing runs at line 12 (it goes on to line 34 "
                                  "after line 7 went on to line 8); T1 then crashes (SIGSEGV) at line 45." SURE);
    begin(&m, "branch", "never taken");
    m.cause.text = "work cache.c:12 never goes on to line 34";
    step(&m, 0, 12, true);
    fails(&m, step(&m, 0, 45, false));
    assert_string_equal(said(&m), "T1 (main) decides differently than in passing runs at line 12 (it never goes on to "
                                  "line 34); T1 then crashes (SIGSEGV) at line 45." SURE);
}

static void test_executed(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "executed", "not executed");
    step(&m, 0, 12, true);
    fails(&m, step(&m, 1, 45, false));
    assert_string_equal(said(&m), "work() does not run line 12, which passing runs do; T2 (worker) then crashes "
                                  "(SIGSEGV) at line 45." SURE);
}

static void test_ring(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "lock_order", "ring");
    m.failure.kind = ETCH__FAILURE_KIND__FAILURE_HANG;
    step(&m, 0, 12, true);
    fails(&m, step(&m, 0, 14, true));
    step(&m, 1, 28, true);
    step(&m, 1, 30, true);
    assert_string_equal(said(&m),
                        "T1 (main) holds the lock that it took at line 12 and waits at line 14 for that of T2 "
                        "(worker), and T2 holds the lock that it took at line 28 and waits at line 30 for "
                        "that of T1: none of them can go on." SURE);
}

static void test_wait(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "wait", "too late");
    m.failure.kind = ETCH__FAILURE_KIND__FAILURE_HANG;
    step(&m, 0, 20, true);
    fails(&m, step(&m, 1, 31, true));
    assert_string_equal(said(&m), "T1 (main) wakes at line 20 before T2 (worker) begins to wait at line 31, and nobody "
                                  "wakes it again." SURE);
}

/* The words of a sketch without a cause claim none. */
static void test_unknown(void **state)
{
    struct made m;

    (void)state;
    begin(&m, "value", "null");
    m.cause.passing_true = 9;
    fails(&m, step(&m, 1, 45, true));
    assert_string_equal(said(&m), "T2 (worker) crashes (SIGSEGV) at cache.c:45. The cause is not known: nothing "
                                  "separates failing runs from passing runs yet.");
    m.sketch.compared = 0;
    m.failure.cause = ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION;
    m.failure.exception = &m.exception;
    m.exception.type = "std::bad_alloc";
    m.sketch.failing_runs = 1;
    assert_string_equal(said(&m),
                        "T2 (worker) ends by an uncaught std::bad_alloc at cache.c:45. The cause is not known: "
                        "there is one failing run and nothing to compare it with.");
    m.sketch.failing_runs = 0;
    assert_string_equal(said(&m), "");
}

/* Indexes and strings that a damaged message may lack. */
static void test_damaged(void **state)
{
    struct made m;
    char small[20];

    (void)state;
    begin(&m, "order", "W");
    step(&m, 900, 17, true);
    step(&m, 1, 45, true)->place = NULL;
    m.cause.variable = NULL;
    m.sketch.failure = NULL;
    assert_string_equal(said(&m), ""); /* neither how nor where it failed */
    m.sketch.failing_place = m.steps[0].place;
    assert_true(strlen(said(&m)) > 0);
    etch_render_sentence(&m.sketch, small, sizeof(small));
    assert_int_equal(strlen(small), sizeof(small) - 1);
    m.cause.kind = "a kind of a later version";
    m.cause.text = "in its own words";
    assert_non_null(strstr(said(&m), "in its own words"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),       cmocka_unit_test(test_fails_elsewhere),
        cmocka_unit_test(test_atomicity),   cmocka_unit_test(test_value),
        cmocka_unit_test(test_value_chain), cmocka_unit_test(test_origin_and_branch),
        cmocka_unit_test(test_executed),    cmocka_unit_test(test_ring),
        cmocka_unit_test(test_wait),        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
