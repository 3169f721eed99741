/* SPDX-License-Identifier: MIT */
/* Contradictory evidence reaches the sketch, over hand-made recordings. */
#include "decoder/order.h"
#include "decoder/recording.h"
#include "sketch/compose.h"
#include "sketch/runs/order.h"

#include "tests/unit/test.h"

#include <string.h>

enum { THREAD = 7 };

static Etch__Sync sync_at(uint32_t tid, uint32_t cpu, uint64_t tsc, Etch__SyncOp op)
{
    Etch__Sync s = ETCH__SYNC__INIT;

    s.tid = tid;
    s.cpu = cpu;
    s.tsc = tsc;
    s.op = op;
    s.object = s.other = THREAD;
    return s;
}

/* A thread that is created at 100,000 cycles on CPU 0 and starts at `start` on CPU 1. The two clocks were measured to
 * be within 10 cycles of each other. */
static struct etch_run_order *order_of(uint64_t start)
{
    struct etch_recording recording = {0};
    Etch__Clock clock = ETCH__CLOCK__INIT, *clocks[] = {&clock};
    Etch__Skew skew = ETCH__SKEW__INIT, *skews[] = {&skew};
    struct etch_run_order *order;
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
    assert_true(etch_array_push(&recording.syncs, sync_at(100, 0, 100000, ETCH__SYNC_OP__SYNC_THREAD_CREATE)));
    assert_true(etch_array_push(&recording.syncs, sync_at(101, 1, start, ETCH__SYNC_OP__SYNC_THREAD_START)));
    assert_int_equal(etch_run_order_build(&order, &recording, NULL, &err), 0);
    etch_array_free(&recording.syncs);
    return order;
}

static struct etch_run *run_of(uint64_t start, uint64_t key)
{
    struct etch_run_thread thread = {
        .tid = 100, .parent = ETCH_NOWHERE, .made_at = ETCH_NOWHERE, .wait_place = ETCH_NOWHERE};
    struct etch_run *run = calloc(1, sizeof(*run));

    run->key = key;
    run->name = strdup("made");
    run->bucket = strdup("SIGSEGV");
    run->failing = true;
    run->failing_place = run->null_operand = run->null_variable = ETCH_NOWHERE;
    run->failure = malloc(sizeof(*run->failure));
    etch__failure__init(run->failure);
    run->failure->kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    run->failure->signal = 11;
    run->order = order_of(start);
    assert_true(etch_array_push(&run->threads, thread));
    return run;
}

static Etch__Sketch *compose(struct etch_run **runs, size_t n)
{
    struct etch_compose_options options = {0};
    struct etch_names names = {0};
    struct etch_error err;
    Etch__Sketch *sketch = etch_compose(&names, runs, n, &options, &err);

    assert_non_null(sketch);
    etch_names_release(&names);
    return sketch;
}

static void name_the_clock(void **state)
{
    struct etch_run *run = run_of(50, 1);
    Etch__Sketch *sketch = compose(&run, 1);
    const Etch__SketchConflict *c;

    (void)state;
    assert_int_equal(sketch->n_conflicts, 1);
    c = sketch->conflicts[0];
    assert_int_equal(c->blamed_case, ETCH__SKETCH_CONFLICT__BLAMED_CPU);
    assert_int_equal(c->cpu, 1);
    assert_int_equal(c->cpu_with, 0);
    assert_int_equal(c->excess, 100000 - 50 - 10);
    assert_string_equal(c->text,
                        "The clock of CPU 1 contradicts other evidence. It differs from the clock of CPU 0 by at "
                        "least 99940 cycles more than was measured. Its times order no events.");
    etch__sketch__free_unpacked(sketch, NULL);
    etch_run_free(run);
}

static void say_nothing_of_a_sound_recording(void **state)
{
    struct etch_run *run = run_of(100500, 1);
    Etch__Sketch *sketch = compose(&run, 1);

    (void)state;
    assert_int_equal(sketch->n_conflicts, 0);
    etch__sketch__free_unpacked(sketch, NULL);
    etch_run_free(run);
}

/* The run with the lowest key is shown. The contradiction is in the other one. */
static void count_other_recordings(void **state)
{
    struct etch_run *runs[] = {run_of(100500, 1), run_of(50, 2)};
    Etch__Sketch *sketch = compose(runs, 2);
    bool found = false;

    (void)state;
    assert_int_equal(sketch->n_conflicts, 0);
    for (size_t i = 0; i < sketch->n_notes; i++)
        found |=
            strstr(sketch->notes[i], "1 of 2 recordings besides the one shown contain contradictory evidence.") != NULL;
    assert_true(found);
    etch__sketch__free_unpacked(sketch, NULL);
    etch_run_free(runs[0]);
    etch_run_free(runs[1]);
}

/* Records of an object, and records of which none can be blamed alone. */
static void describe_records(void **state)
{
    struct etch_conflict conflict = {.cpu = ETCH_CPU_NONE, .cpu_with = ETCH_CPU_NONE, .object = 0x5020};
    char text[512];

    (void)state;
    etch_run_order_conflict_text(&conflict, text, sizeof(text));
    assert_non_null(strstr(text, "object 0x5020"));
    conflict.object = 0;
    etch_run_order_conflict_text(&conflict, text, sizeof(text));
    assert_non_null(strstr(text, "no single object is to blame"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_the_clock),
        cmocka_unit_test(say_nothing_of_a_sound_recording),
        cmocka_unit_test(count_other_recordings),
        cmocka_unit_test(describe_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
