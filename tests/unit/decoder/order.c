/* SPDX-License-Identifier: MIT */
/* The order of a few events each: one case for each kind of evidence, and for each reason not to claim anything. */
#include "decoder/order.h"
#include "decoder/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOCK 0x1000
#define VARIABLE 0x2000

/* Two CPUs, the second one's clock ahead by 90 to 110. */
static const struct etch_cpu_range cpus[3] = {
    {.known = true, .local = true}, {.lo = 90, .hi = 110, .known = true, .local = true}, {.local = true}};

static struct etch_event at(uint32_t thread, uint32_t cpu, uint64_t lo, uint64_t hi)
{
    struct etch_event e = {.thread = thread, .lo = {.tsc = lo, .cpu = cpu}, .hi = {.tsc = hi, .cpu = cpu}};

    return e;
}

static struct etch_event sync_at(uint32_t thread, uint32_t cpu, uint64_t lo, uint64_t hi, Etch__SyncOp op)
{
    struct etch_event e = at(thread, cpu, lo, hi);

    e.kind = ETCH_EVENT_SYNC;
    e.op = (uint8_t)op;
    e.object = LOCK;
    return e;
}

static struct etch_event access_at(uint32_t thread, uint32_t cpu, uint64_t lo, uint64_t hi, unsigned access,
                                   uint64_t value)
{
    struct etch_event e = at(thread, cpu, lo, hi);

    e.kind = ETCH_EVENT_ACCESS;
    e.object = VARIABLE;
    e.access = (uint8_t)(access | (access == ETCH_ACCESS_READ ? ETCH_ACCESS_SEEN_KNOWN : ETCH_ACCESS_WRITTEN_KNOWN));
    e.seen = e.written = value;
    return e;
}

static struct etch_order *build(struct etch_order_input *input, const struct etch_event *events, size_t n)
{
    struct etch_order *order;
    struct etch_error err;

    input->events = events;
    input->n = n;
    input->threads = 3;
    input->cpus = cpus;
    input->n_cpus = 3;
    assert_int_equal(etch_order_build(&order, input, &err), 0);
    return order;
}

static void clocks_order_what_their_ranges_allow(void **state)
{
    /* On CPU 1's clock 210 is 100 to 120 of CPU 0's. */
    struct etch_event events[] = {at(0, 0, 95, 99), at(1, 1, 210, 215), at(0, 0, 118, 126)};
    struct etch_order_input input = {0};
    struct etch_order *order = build(&input, events, 3);
    struct etch_evidence link;

    (void)state;
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_BEFORE);
    assert_int_equal(etch_order_ask(order, 1, 0), ETCH_AFTER);
    assert_int_equal(etch_order_ask(order, 1, 2), ETCH_UNORDERED);
    assert_int_equal(etch_order_ask(order, 0, 2), ETCH_BEFORE);
    assert_int_equal(etch_order_ask(order, 2, 2), ETCH_SAME);
    assert_int_equal(etch_order_why(order, 1, 0, &link, 1), 1);
    assert_int_equal(link.kind, ETCH_BY_CLOCK);
    assert_int_equal(link.from, 0);
    etch_order_free(order);
}

static void equal_stamps_order_nothing(void **state)
{
    struct etch_event events[] = {at(0, 0, 90, 100), at(1, 0, 100, 110)};
    struct etch_order_input input = {0};
    struct etch_order *order = build(&input, events, 2);

    (void)state;
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_UNORDERED);
    etch_order_free(order);
}

static void an_unknown_clock_orders_its_own_cpu_only(void **state)
{
    struct etch_event events[] = {at(0, 2, 10, 20), at(1, 2, 30, 40), at(0, 0, 1000, 1010)};
    struct etch_order_input input = {0};
    struct etch_order *order = build(&input, events, 3);

    (void)state;
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_BEFORE);
    assert_int_equal(etch_order_ask(order, 1, 2), ETCH_UNORDERED);
    etch_order_free(order);
}

/* The sections overlap by the clocks' ranges, but the first acquire is before the second release. */
static void locks_exclude_each_other(void **state)
{
    struct etch_event events[] = {sync_at(0, 0, 0, 100, ETCH__SYNC_OP__SYNC_MUTEX_LOCK),
                                  sync_at(0, 0, 150, 500, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK),
                                  sync_at(1, 0, 90, 400, ETCH__SYNC_OP__SYNC_MUTEX_LOCK),
                                  sync_at(1, 0, 410, 900, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK)};
    struct etch_order_input input = {0};
    struct etch_order *order = build(&input, events, 4);
    struct etch_evidence link;

    (void)state;
    assert_int_equal(etch_order_ask(order, 1, 2), ETCH_BEFORE);
    assert_int_equal(etch_order_why(order, 1, 2, &link, 1), 1);
    assert_int_equal(link.kind, ETCH_BY_LOCK);
    etch_order_free(order);
    events[2].result = 16; /* a lock that was not got orders nothing */
    events[3].kind = ETCH_EVENT_MARK;
    order = build(&input, events, 4);
    assert_int_equal(etch_order_ask(order, 1, 2), ETCH_UNORDERED);
    etch_order_free(order);
}

/* Sections that nothing orders are compared with twelve others each. What that leaves out is counted. */
static void sections_beyond_the_bound_are_counted(void **state)
{
    struct etch_event events[80];
    struct etch_order_input input = {0};
    struct etch_order_size size;
    struct etch_order *order;

    (void)state;
    for (size_t i = 0; i < 80; i++)
        events[i] = sync_at(i < 40 ? 0 : 1, 0, 0, 1000,
                            i % 2 ? ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK : ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    order = build(&input, events, 80);
    etch_order_measure(order, &size);
    assert_true(size.bounded > 0);
    etch_order_free(order);
    order = build(&input, events + 34, 12); /* three sections of each thread */
    etch_order_measure(order, &size);
    assert_int_equal(size.bounded, 0);
    etch_order_free(order);
}

/* A program that unlocks what it does not hold: from then on the lock excludes nobody, and the sections overlap. */
static void a_lock_that_is_misused_orders_nothing(void **state)
{
    struct etch_event events[] = {sync_at(0, 0, 0, 100, ETCH__SYNC_OP__SYNC_MUTEX_LOCK),
                                  sync_at(0, 0, 150, 500, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK),
                                  sync_at(1, 0, 90, 400, ETCH__SYNC_OP__SYNC_MUTEX_LOCK),
                                  sync_at(1, 0, 410, 900, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK),
                                  sync_at(1, 0, 910, 1000, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK)};
    struct etch_order_input input = {0};
    struct etch_order *order = build(&input, events, 5);

    (void)state;
    assert_int_equal(etch_order_ask(order, 1, 2), ETCH_UNORDERED);
    etch_order_free(order);
    order = build(&input, events, 4); /* without that one it would have been before */
    assert_int_equal(etch_order_ask(order, 1, 2), ETCH_BEFORE);
    etch_order_free(order);
}

/* No bounds at all. */
static struct etch_event somewhere(uint32_t thread, Etch__SyncOp op)
{
    return sync_at(thread, ETCH_CPU_NONE, 0, 0, op);
}

static void lives_need_every_record(void **state)
{
    struct etch_event events[] = {
        somewhere(0, ETCH__SYNC_OP__SYNC_THREAD_CREATE), somewhere(1, ETCH__SYNC_OP__SYNC_THREAD_START),
        somewhere(1, ETCH__SYNC_OP__SYNC_THREAD_EXIT), somewhere(0, ETCH__SYNC_OP__SYNC_THREAD_JOIN),
        somewhere(0, ETCH__SYNC_OP__SYNC_MUTEX_INIT)};
    struct etch_order_input input = {0};
    struct etch_order *order = build(&input, events, 5);

    (void)state;
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_BEFORE);
    assert_int_equal(etch_order_ask(order, 2, 3), ETCH_BEFORE);
    etch_order_free(order);
    events[4].kind = ETCH_EVENT_LOSS; /* the create and the start may be of two threads that had one handle */
    order = build(&input, events, 5);
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_UNORDERED);
    etch_order_free(order);
}

/* A thread id that the kernel gave out twice: the first thread's join is behind the first life only. */
static void a_join_is_behind_one_life(void **state)
{
    struct etch_event events[] = {
        somewhere(0, ETCH__SYNC_OP__SYNC_THREAD_CREATE), somewhere(1, ETCH__SYNC_OP__SYNC_THREAD_START),
        somewhere(1, ETCH__SYNC_OP__SYNC_THREAD_EXIT),   somewhere(0, ETCH__SYNC_OP__SYNC_THREAD_JOIN),
        somewhere(0, ETCH__SYNC_OP__SYNC_THREAD_CREATE), somewhere(1, ETCH__SYNC_OP__SYNC_THREAD_START),
        somewhere(1, ETCH__SYNC_OP__SYNC_MUTEX_INIT)};
    struct etch_order_input input = {0};
    struct etch_order *order;
    size_t conflicts;

    (void)state;
    events[4].object = events[5].object = LOCK + 1;
    order = build(&input, events, 7);
    assert_int_equal(etch_order_ask(order, 2, 3), ETCH_BEFORE);
    assert_int_equal(etch_order_ask(order, 6, 3), ETCH_AFTER); /* by the second create */
    etch_order_conflicts(order, &conflicts);
    assert_int_equal(conflicts, 0);
    etch_order_free(order);
}

/* A handle that was used again many times: each start follows its own create, and the join ends the last life. */
static void a_handle_may_have_many_lives(void **state)
{
    enum { LIVES = 300 };
    struct etch_event events[2 * LIVES + 1];
    struct etch_order_input input = {0};
    struct etch_order *order;

    (void)state;
    for (uint64_t i = 0; i < LIVES; i++) {
        events[2 * i] = sync_at(0, 0, 10 * i, 10 * i + 1, ETCH__SYNC_OP__SYNC_THREAD_CREATE);
        events[2 * i + 1] = sync_at(1, 0, 10 * i, 10 * i + 5, ETCH__SYNC_OP__SYNC_THREAD_START);
    }
    events[2 * LIVES - 1] = somewhere(1, ETCH__SYNC_OP__SYNC_THREAD_START);
    events[2 * LIVES] = somewhere(0, ETCH__SYNC_OP__SYNC_THREAD_JOIN);
    order = build(&input, events, 2 * LIVES + 1);
    assert_int_equal(etch_order_ask(order, 2 * LIVES - 2, 2 * LIVES - 1), ETCH_BEFORE);
    assert_int_equal(etch_order_ask(order, 2 * LIVES - 1, 2 * LIVES), ETCH_BEFORE);
    etch_order_free(order);
}

/* Thread 0 signals three times, before, during and perhaps during a wait of thread 1. */
static void a_wait_that_returns_was_signalled_if_the_user_says_so(void **state)
{
    struct etch_event events[] = {sync_at(0, 0, 10, 20, ETCH__SYNC_OP__SYNC_COND_SIGNAL),
                                  sync_at(0, 0, 100, 400, ETCH__SYNC_OP__SYNC_COND_SIGNAL),
                                  sync_at(0, 0, 410, 500, ETCH__SYNC_OP__SYNC_COND_BROADCAST),
                                  sync_at(1, 0, 50, 600, ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN),
                                  at(1, 0, 60, 600), /* in a signal handler */
                                  sync_at(1, 0, 60, 600, ETCH__SYNC_OP__SYNC_COND_WAIT_END)};
    struct etch_order_input input = {0};
    struct etch_order *order;
    struct etch_evidence link;

    (void)state;
    events[3].other = events[5].other = LOCK + 1;
    order = build(&input, events, 6);
    assert_int_equal(etch_order_ask(order, 1, 5), ETCH_UNORDERED); /* nothing is proven */
    etch_order_free(order);
    input.signals_wake = true;
    order = build(&input, events, 6);
    assert_int_equal(etch_order_ask(order, 1, 5), ETCH_BEFORE); /* it, or the one behind it */
    assert_int_equal(etch_order_ask(order, 2, 5), ETCH_UNORDERED);
    assert_int_equal(etch_order_why(order, 1, 5, &link, 1), 1);
    assert_int_equal(link.kind, ETCH_BY_SIGNAL);
    etch_order_free(order);
    events[5].result = 110; /* timed out */
    order = build(&input, events, 6);
    assert_int_equal(etch_order_ask(order, 1, 5), ETCH_UNORDERED);
    etch_order_free(order);
    events[5].result = 0;
    events[4] = sync_at(2, 0, 60, 600, ETCH__SYNC_OP__SYNC_COND_SIGNAL); /* it may have been another thread */
    order = build(&input, events, 6);
    assert_int_equal(etch_order_ask(order, 1, 5), ETCH_UNORDERED);
    etch_order_free(order);
}

/* One event has only a lower bound, the other only an upper one. */
static void the_sequence_respects_half_known_times(void **state)
{
    struct etch_event events[] = {at(0, 0, 59, 0), at(1, 0, 0, 10)};
    struct etch_order_input input = {0};
    struct etch_order *order;

    (void)state;
    events[0].hi.cpu = events[1].lo.cpu = ETCH_CPU_NONE;
    order = build(&input, events, 2);
    assert_int_equal(etch_order_ask(order, 1, 0), ETCH_BEFORE);
    assert_int_equal(etch_order_sequence(order)[0], 1);
    etch_order_free(order);
}

/* Links that go in a circle, and links to nowhere: no end, or an error, but no hang. */
static void impossible_links_are_left_out(void **state)
{
    struct etch_event events[] = {at(0, 0, 10, 20), at(1, 0, 30, 40)};
    struct etch_order_link links[] = {{0, 1}, {1, 0}};
    struct etch_order_input input = {.links = links, .n_links = 2};
    struct etch_order *order = build(&input, events, 2);
    struct etch_error err;
    size_t conflicts;

    (void)state;
    etch_order_conflicts(order, &conflicts);
    assert_true(conflicts > 0);
    etch_order_free(order);
    links[1].to = 2;
    assert_int_equal(etch_order_build(&order, &input, &err), -1);
}

static void a_read_follows_the_only_write_of_its_value(void **state)
{
    struct etch_event events[] = {
        access_at(0, 0, 0, 1000, ETCH_ACCESS_WRITE, 7), access_at(1, 1, 0, 1000, ETCH_ACCESS_READ, 7),
        access_at(0, 0, 500, 2000, ETCH_ACCESS_WRITE, 8), access_at(1, 1, 0, 3000, ETCH_ACCESS_READ, 7)};
    struct etch_watched location = {.object = VARIABLE, .initial = 0, .initial_known = true};
    struct etch_order_input input = {.locations = &location, .n_locations = 1};
    struct etch_order *order = build(&input, events, 4);

    (void)state;
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_BEFORE);
    assert_int_equal(etch_order_ask(order, 3, 2), ETCH_BEFORE); /* 7 was still there */
    etch_order_free(order);
    location.initial = 7; /* now it may have been there from the start */
    order = build(&input, events, 4);
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_UNORDERED);
    etch_order_free(order);
}

/* One has no beginning, the other no end, and they lie one cycle apart, before zero: the sequence must not turn them
 * round. */
static void a_sequence_respects_open_ends(void **state)
{
    struct etch_event events[] = {at(0, 1, 0, 4), at(0, 1, 25, 0), at(1, 1, 0, 4)};
    struct etch_order_input input = {0};
    struct etch_order *order;
    const uint32_t *sequence;

    (void)state;
    events[0].lo.cpu = events[2].lo.cpu = events[1].hi.cpu = ETCH_CPU_NONE;
    order = build(&input, events, 3);
    sequence = etch_order_sequence(order);
    assert_int_equal(etch_order_ask(order, 2, 1), ETCH_BEFORE);
    assert_int_equal(sequence[2], 1);
    etch_order_free(order);
}

/* What a thread wrote itself before it read another's value was there before that one came. */
static void an_own_write_is_before_what_is_read(void **state)
{
    struct etch_event events[] = {access_at(0, 0, 0, 1000, ETCH_ACCESS_WRITE, 7),
                                  access_at(1, 1, 0, 1000, ETCH_ACCESS_WRITE, 8),
                                  access_at(1, 1, 0, 3000, ETCH_ACCESS_READ, 7)};
    struct etch_watched location = {.object = VARIABLE, .initial = 0, .initial_known = true};
    struct etch_order_input input = {.locations = &location, .n_locations = 1};
    struct etch_order *order = build(&input, events, 3);

    (void)state;
    assert_int_equal(etch_order_ask(order, 1, 0), ETCH_BEFORE);
    etch_order_free(order);
    events[2].seen = 8; /* its own: then nothing is known */
    order = build(&input, events, 3);
    assert_int_equal(etch_order_ask(order, 1, 0), ETCH_UNORDERED);
    etch_order_free(order);
}

static void a_value_that_nobody_wrote_is_reported(void **state)
{
    struct etch_event events[] = {access_at(0, 0, 0, 10, ETCH_ACCESS_WRITE, 7),
                                  access_at(1, 0, 20, 30, ETCH_ACCESS_READ, 9)};
    struct etch_watched location = {.object = VARIABLE, .initial = 0, .initial_known = true};
    struct etch_order_input input = {.locations = &location, .n_locations = 1};
    struct etch_order *order = build(&input, events, 2);
    const struct etch_conflict *conflicts;
    size_t n;

    (void)state;
    conflicts = etch_order_conflicts(order, &n);
    assert_int_equal(n, 1);
    assert_int_equal(conflicts[0].object, VARIABLE);
    assert_int_equal(conflicts[0].cpu, ETCH_CPU_NONE);
    etch_order_free(order);
}

/* A value arrives before it was sent, by the clocks: two links, and the clock of CPU 1 is left out. */
static void a_cycle_names_the_clock(void **state)
{
    struct etch_event events[] = {access_at(0, 0, 1000, 1010, ETCH_ACCESS_WRITE, 7),
                                  access_at(1, 1, 600, 610, ETCH_ACCESS_READ, 7), at(0, 0, 2000, 2010),
                                  at(1, 1, 5000, 5010)};
    struct etch_watched location = {.object = VARIABLE, .initial = 0, .initial_known = true};
    struct etch_order_input input = {.locations = &location, .n_locations = 1};
    struct etch_order *order = build(&input, events, 4);
    const struct etch_conflict *conflicts;
    size_t n;

    (void)state;
    conflicts = etch_order_conflicts(order, &n);
    assert_int_equal(n, 1);
    assert_int_equal(conflicts[0].cpu, 1);
    assert_int_equal(conflicts[0].cpu_with, 0);
    assert_int_equal(conflicts[0].n, 2);
    assert_int_equal(conflicts[0].excess, 1000 - (610 - 90));
    assert_int_equal(etch_order_ask(order, 0, 1), ETCH_BEFORE);    /* by its value */
    assert_int_equal(etch_order_ask(order, 2, 3), ETCH_UNORDERED); /* that clock says nothing any more */
    etch_order_free(order);
}

static void impossible_input_is_refused(void **state)
{
    struct etch_event event = at(7, 0, 1, 2);
    struct etch_order_input input = {.events = &event, .n = 1, .threads = 2, .cpus = cpus, .n_cpus = 3};
    struct etch_order *order;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_order_build(&order, &input, &err), -1);
    assert_null(order);
    input.n = 0;
    assert_int_equal(etch_order_build(&order, &input, &err), 0);
    etch_order_free(order);
    etch_order_free(NULL);
}

static void bounds_lie_between_the_threads_stamps(void **state)
{
    struct etch_event events[3] = {{.thread = 0}, {.thread = 0}, {.thread = 0}};
    struct etch_event_stamp stamps[3] = {{.tsc = 100, .cpu = 0, .stamping = ETCH_STAMPED_AFTER, .error = 3},
                                         {.tsc = 200, .cpu = 1, .stamping = ETCH_STAMPED_BEFORE},
                                         {.tsc = 300, .cpu = 0, .stamping = ETCH_STAMPED_AFTER, .latency = 20}};

    (void)state;
    etch_timeline_bounds(events, stamps, 3, 1);
    assert_int_equal(events[0].lo.cpu, ETCH_CPU_NONE);
    assert_int_equal(events[0].hi.tsc, 103);
    assert_int_equal(events[1].lo.tsc, 200);
    assert_int_equal(events[1].hi.tsc, 300);
    assert_int_equal(events[1].hi.cpu, 0);
    assert_int_equal(events[2].lo.tsc, 280);
    assert_int_equal(events[2].hi.tsc, 300);
}

/* A clock record with one CPU beside the reference. */
static void fill(Etch__Clock *clock, Etch__Skew *skew, Etch__Skew **list, Etch__ClockPhase phase, int64_t lo,
                 int64_t hi)
{
    etch__clock__init(clock);
    etch__skew__init(skew);
    skew->cpu = 1;
    skew->lo = lo;
    skew->hi = hi;
    skew->method = ETCH__SKEW_METHOD__SKEW_BOUNDS;
    *list = skew;
    clock->phase = phase;
    clock->constant = clock->nonstop = 1;
    clock->skews = list;
    clock->n_skews = 1;
}

static void clocks_take_the_hull_or_nothing(void **state)
{
    Etch__Clock before, after, *records[2] = {&before, &after};
    Etch__Skew b, a, *bl, *al;
    struct etch_timeline_clocks clocks;
    struct etch_error err;

    (void)state;
    fill(&before, &b, &bl, ETCH__CLOCK_PHASE__CLOCK_BEFORE, -100, 50);
    fill(&after, &a, &al, ETCH__CLOCK_PHASE__CLOCK_AFTER, -20, 90);
    assert_int_equal(etch_timeline_clocks(&clocks, records, 2, false, 10, &err), 0);
    assert_true(clocks.cpus[1].known);
    assert_int_equal(clocks.cpus[1].lo, -110);
    assert_int_equal(clocks.cpus[1].hi, 100);
    etch_timeline_clocks_free(&clocks);
    a.lo = 51; /* it changed in between */
    assert_int_equal(etch_timeline_clocks(&clocks, records, 2, false, 10, &err), 0);
    assert_false(clocks.cpus[1].known);
    assert_int_equal(clocks.changed, 1);
    etch_timeline_clocks_free(&clocks);
    before.nonstop = 0;
    assert_int_equal(etch_timeline_clocks(&clocks, records, 2, false, 10, &err), 0);
    assert_true(clocks.refused);
    assert_false(clocks.cpus[0].known);
    etch_timeline_clocks_free(&clocks);
    assert_int_equal(etch_timeline_clocks(&clocks, records, 0, false, 10, &err), 0);
    assert_true(clocks.refused);
    etch_timeline_clocks_free(&clocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_order_what_their_ranges_allow),
        cmocka_unit_test(equal_stamps_order_nothing),
        cmocka_unit_test(an_unknown_clock_orders_its_own_cpu_only),
        cmocka_unit_test(locks_exclude_each_other),
        cmocka_unit_test(sections_beyond_the_bound_are_counted),
        cmocka_unit_test(a_lock_that_is_misused_orders_nothing),
        cmocka_unit_test(lives_need_every_record),
        cmocka_unit_test(a_join_is_behind_one_life),
        cmocka_unit_test(a_handle_may_have_many_lives),
        cmocka_unit_test(a_wait_that_returns_was_signalled_if_the_user_says_so),
        cmocka_unit_test(the_sequence_respects_half_known_times),
        cmocka_unit_test(impossible_links_are_left_out),
        cmocka_unit_test(a_read_follows_the_only_write_of_its_value),
        cmocka_unit_test(a_sequence_respects_open_ends),
        cmocka_unit_test(an_own_write_is_before_what_is_read),
        cmocka_unit_test(a_value_that_nobody_wrote_is_reported),
        cmocka_unit_test(a_cycle_names_the_clock),
        cmocka_unit_test(impossible_input_is_refused),
        cmocka_unit_test(bounds_lie_between_the_threads_stamps),
        cmocka_unit_test(clocks_take_the_hull_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
