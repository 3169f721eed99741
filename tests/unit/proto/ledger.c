/* SPDX-License-Identifier: MIT */
/* The ledger of losses: what a few records, made by hand, are said to lack. */
#include "proto/ledger.h"
#include "tests/unit/test.h"

#include <string.h>

static struct etch_ledger ledger;
static uint64_t counts[ETCH_LOSS_CAUSES];

#define CAUSE(name) ETCH__LOSS_CAUSE__LOSS_##name

static int setup(void **state)
{
    (void)state;
    memset(&ledger, 0, sizeof(ledger));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    etch_ledger_release(&ledger);
    return 0;
}

static void take(Etch__Record__BodyCase kind, void *message)
{
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = kind;
    record.host = message; /* all members of the union are pointers */
    etch_ledger_take(&ledger, &record);
}

static void program(Etch__Source source)
{
    Etch__Program program = ETCH__PROGRAM__INIT;

    program.source = source;
    take(ETCH__RECORD__BODY_PROGRAM, &program);
}

static void stream(uint32_t id, uint32_t tid, bool snapshot)
{
    Etch__Stream stream = ETCH__STREAM__INIT;

    stream.id = id;
    stream.of_case = ETCH__STREAM__OF_TID;
    stream.tid = tid;
    stream.pid = 1;
    stream.snapshot = snapshot;
    take(ETCH__RECORD__BODY_STREAM, &stream);
}

static void flow(uint32_t id, uint64_t offset, size_t size)
{
    Etch__Flow flow = ETCH__FLOW__INIT;

    flow.stream = id;
    flow.offset = offset;
    flow.data.len = size;
    take(ETCH__RECORD__BODY_FLOW, &flow);
}

static void lose(Etch__LossCause cause, uint32_t id, uint64_t events)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = cause;
    loss.stream = id;
    loss.events = events;
    take(ETCH__RECORD__BODY_LOSS, &loss);
}

static void thread(uint32_t tid)
{
    Etch__Thread thread = ETCH__THREAD__INIT;

    thread.pid = 1;
    thread.tid = tid;
    take(ETCH__RECORD__BODY_THREAD, &thread);
}

static void assert_only(Etch__LossCause cause, uint64_t n)
{
    assert_int_equal(etch_ledger_sum(&ledger, counts), n);
    assert_int_equal(counts[cause], n);
}

static void say_nothing_of_a_whole_run(void **state)
{
    char text[100];

    (void)state;
    program(ETCH__SOURCE__SOURCE_SOFT);
    stream(1, 10, true);
    flow(1, 0, 100);
    flow(1, 100, 50);
    thread(10);
    thread(10);
    assert_int_equal(etch_ledger_sum(&ledger, counts), 0);
    assert_string_equal(etch_losses_text(counts, text, sizeof(text)), "nothing");
}

static void see_a_ring_that_wrapped(void **state)
{
    (void)state;
    stream(1, 10, true);
    flow(1, 4096, 100);
    assert_only(CAUSE(RING_WRAPPED), 1);
    lose(CAUSE(RING_WRAPPED), 1, 0); /* the same, told: not twice */
    assert_only(CAUSE(RING_WRAPPED), 1);
}

static void see_a_hole_that_nobody_told(void **state)
{
    (void)state;
    stream(1, 10, false);
    flow(1, 0, 100);
    flow(1, 200, 100);
    assert_only(CAUSE(UNSPECIFIED), 1);
    lose(CAUSE(AUX_TRUNCATED), 1, 0);
    assert_only(CAUSE(AUX_TRUNCATED), 1);
}

static void see_threads_without_control_flow(void **state)
{
    (void)state;
    program(ETCH__SOURCE__SOURCE_SOFT);
    stream(1, 10, true);
    flow(1, 0, 100);
    thread(10);
    thread(11);
    thread(12);
    assert_only(CAUSE(NO_RING), 2);
    lose(CAUSE(NO_RING), 0, 2); /* both told, in one loss */
    assert_only(CAUSE(NO_RING), 1);
}

static void want_no_control_flow_of_other_sources(void **state)
{
    (void)state;
    program(ETCH__SOURCE__SOURCE_NONE);
    thread(10);
    assert_int_equal(etch_ledger_sum(&ledger, counts), 0);
    program(ETCH__SOURCE__SOURCE_PT); /* a stream a CPU */
    assert_int_equal(etch_ledger_sum(&ledger, counts), 0);
}

static void keep_within_bounds(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 5000; i++)
        stream(i, i, false);
    assert_only(CAUSE(LIMIT), 1);
}

static void name_each_cause(void **state)
{
    char key[64], text[100];

    (void)state;
    for (unsigned i = 0; i < etch__loss_cause__descriptor.n_values; i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(etch_loss_name((Etch__LossCause)i), etch_loss_name((Etch__LossCause)k));
    assert_string_equal(etch_loss_key(CAUSE(RING_WRAPPED), key), "ring_wrapped");
    assert_string_equal(etch_loss_name((Etch__LossCause)99), "unknown"); /* of a later version */
    etch_ledger_add(&ledger, CAUSE(CUT), 1);
    etch_ledger_add(&ledger, CAUSE(DAMAGED), 3);
    etch_ledger_add(&ledger, (Etch__LossCause)77, 1);
    assert_int_equal(etch_ledger_sum(&ledger, counts), 5);
    assert_string_equal(etch_losses_text(counts, text, sizeof(text)), "gap (1), file cut (1), damaged (3)");
    etch_losses_text(counts, text, 12); /* what does not fit is cut off */
    assert_string_equal(text, "gap (1), fi");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(say_nothing_of_a_whole_run),
        CASE(see_a_ring_that_wrapped),
        CASE(see_a_hole_that_nobody_told),
        CASE(see_threads_without_control_flow),
        CASE(want_no_control_flow_of_other_sources),
        CASE(keep_within_bounds),
        CASE(name_each_cause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
