/* SPDX-License-Identifier: MIT */
/* Recordings of a few records each, made by hand: what their stamps, losses and clocks let etch say, and what not. */
#include "decoder/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOCK 0x1000

/* Two CPUs, the second one's clock ahead by 90 to 110; perf's clock is the TSC, in ns of one tick, within 5. */
struct made {
    struct etch_recording r;
    Etch__Host host;
    Etch__Clock before, after, *clocks[2];
    Etch__Skew skew[2], *skews[2];
    Etch__PerfClock perf;
    Etch__Watch watch, *watches[1];
    Etch__Loss loss, *losses[1];
    struct etch_timeline_options options;
    struct etch_timeline t;
    struct etch_order *order;
};

static void set_clock(struct made *m, int i, Etch__Clock *clock, Etch__ClockPhase phase)
{
    etch__clock__init(clock);
    etch__skew__init(&m->skew[i]);
    m->skew[i].cpu = 1;
    m->skew[i].lo = 90;
    m->skew[i].hi = 110;
    m->skew[i].method = ETCH__SKEW_METHOD__SKEW_BOUNDS;
    m->skews[i] = &m->skew[i];
    clock->phase = phase;
    clock->constant = clock->nonstop = 1;
    clock->skews = &m->skews[i];
    clock->n_skews = 1;
    clock->perf_clock = &m->perf;
    m->clocks[i] = clock;
}

static void make(struct made *m)
{
    static char source[] = "tsc", none[] = "";

    memset(m, 0, sizeof(*m));
    etch__host__init(&m->host);
    m->host.clocksource = source;
    m->host.hypervisor = none;
    m->r.host = &m->host;
    etch__perf_clock__init(&m->perf);
    m->perf.tsc_per_ns = 1;
    m->perf.error_cycles = 5;
    set_clock(m, 0, &m->before, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
    set_clock(m, 1, &m->after, ETCH__CLOCK_PHASE__CLOCK_AFTER);
    m->r.clocks.v = m->clocks;
    m->r.clocks.n = 2;
    etch__watch__init(&m->watch);
    m->watch.id = 1;
    m->watch.reads = m->watch.writes = true;
    m->watch.initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
    m->watches[0] = &m->watch;
    m->r.watches.v = m->watches;
    m->r.watches.n = 1;
    etch__loss__init(&m->loss);
    m->losses[0] = &m->loss;
    m->r.losses.v = m->losses;
}

static void sync_at(struct made *m, uint32_t tid, uint32_t cpu, uint64_t tsc, Etch__SyncOp op)
{
    Etch__Sync s = ETCH__SYNC__INIT;

    s.tid = tid;
    s.cpu = cpu;
    s.tsc = tsc;
    s.op = op;
    s.object = LOCK;
    assert_true(etch_array_push(&m->r.syncs, s));
}

static void access_at(struct made *m, uint32_t tid, uint32_t cpu, uint64_t ns, bool write, uint64_t value)
{
    Etch__Access a = ETCH__ACCESS__INIT;

    a.tid = tid;
    a.cpu = cpu;
    a.perf_ns = a.tsc = ns;
    a.watch = 1;
    a.write = write;
    a.read = !write;
    a.known_case = ETCH__ACCESS__KNOWN_VALUE;
    a.value = value;
    assert_true(etch_array_push(&m->r.accesses, a));
}

static void build(struct made *m)
{
    struct etch_error err;

    if (etch_timeline_build(&m->t, &m->r, &m->options, &err) < 0 || etch_order_build(&m->order, &m->t.input, &err) < 0)
        fail_msg("%s", err.what);
}

static void drop(struct made *m)
{
    etch_order_free(m->order);
    m->order = NULL;
    etch_timeline_free(&m->t);
}

static void unmake(struct made *m)
{
    drop(m);
    etch_array_free(&m->r.syncs);
    etch_array_free(&m->r.accesses);
    etch_array_free(&m->r.switches);
}

/* The event of record `index`: kind 0 access, 1 sync, 2 switch. */
static size_t event_of(const struct made *m, unsigned kind, size_t index)
{
    for (size_t i = 0; i < m->t.source.n; i++)
        if (m->t.source.v[i] == (index << 2 | kind))
            return i;
    fail_msg("no event of record %zu of kind %u", index, kind);
    return 0;
}

static enum etch_relation ask(const struct made *m, unsigned ka, size_t a, unsigned kb, size_t b)
{
    return etch_order_ask(m->order, event_of(m, ka, a), event_of(m, kb, b));
}

static enum etch_relation ask_mark(const struct made *m, size_t mark, unsigned kind, size_t index)
{
    return etch_order_ask(m->order, m->t.of_mark.v[mark], event_of(m, kind, index));
}

/* ---- Marks ---- */

static struct etch_step step_at(uint32_t tid, uint32_t cpu, uint64_t lo, uint64_t hi)
{
    return (struct etch_step){.kind = ETCH_STEP_BLOCK, .tid = tid, .cpu = cpu, .time = {lo, hi}};
}

/* Steps of thread 2 on CPU 1, whose clock is ahead by 90 to 110, and an access of thread 1 on CPU 0, between 205 (its
 * thread's stamp before) and 505. */
static void a_step_is_before_or_behind_an_access(void **state)
{
    struct etch_step steps[] = {step_at(2, 1, 100, 280), step_at(2, 1, 290, 620), step_at(2, 1, 630, 900)};
    struct etch_mark marks[3];
    struct etch_evidence link;
    struct made m;

    (void)state;
    make(&m);
    sync_at(&m, 1, 0, 200, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    access_at(&m, 1, 0, 500, true, 7);
    for (int i = 0; i < 3; i++)
        marks[i] = etch_mark_of_step(&steps[i]);
    m.options.marks = marks;
    m.options.n_marks = 3;
    build(&m);
    assert_int_equal(ask_mark(&m, 0, 0, 0), ETCH_BEFORE);    /* over by 190 */
    assert_int_equal(ask_mark(&m, 1, 0, 0), ETCH_UNORDERED); /* 180 to 530 */
    assert_int_equal(ask_mark(&m, 2, 0, 0), ETCH_AFTER);     /* from 520 on */
    assert_int_equal(etch_order_ask(m.order, m.t.of_mark.v[0], m.t.of_mark.v[2]), ETCH_BEFORE);
    assert_int_equal(etch_order_why(m.order, m.t.of_mark.v[0], event_of(&m, 0, 0), &link, 1), 1);
    assert_int_equal(link.kind, ETCH_BY_CLOCK);
    unmake(&m);
}

static void a_step_without_time_says_nothing(void **state)
{
    struct etch_step step = step_at(2, UINT32_MAX, 0, UINT64_MAX);
    struct etch_mark mark = etch_mark_of_step(&step);
    struct made m;

    (void)state;
    make(&m);
    access_at(&m, 1, 0, 500, true, 7);
    m.options.marks = &mark;
    m.options.n_marks = 1;
    build(&m);
    assert_int_equal(ask_mark(&m, 0, 0, 0), ETCH_UNORDERED);
    unmake(&m);
}

/* Of vpt's steps the CPU is not known: any of the two. */
static void a_step_of_some_cpu_is_bounded_by_all(void **state)
{
    struct etch_step steps[] = {step_at(2, UINT32_MAX, 100, 204), step_at(2, UINT32_MAX, 500, 608),
                                step_at(2, UINT32_MAX, 617, 700)};
    struct etch_mark marks[3];
    struct made m;

    (void)state;
    make(&m);
    sync_at(&m, 1, 0, 205, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    access_at(&m, 1, 0, 500, true, 7);
    for (int i = 0; i < 3; i++)
        marks[i] = etch_mark_of_step(&steps[i]);
    m.options.marks = marks;
    m.options.n_marks = 3;
    build(&m);
    assert_int_equal(ask_mark(&m, 0, 0, 0), ETCH_BEFORE);
    assert_int_equal(ask_mark(&m, 1, 0, 0), ETCH_UNORDERED);
    assert_int_equal(ask_mark(&m, 2, 0, 0), ETCH_AFTER); /* 617 - 110 > 505 */
    drop(&m);
    m.skew[0].method = m.skew[1].method = ETCH__SKEW_METHOD__SKEW_STATISTICS; /* now CPU 1's clock is not known */
    build(&m);
    assert_int_equal(ask_mark(&m, 0, 0, 0), ETCH_UNORDERED);
    assert_int_equal(ask_mark(&m, 2, 0, 0), ETCH_UNORDERED);
    unmake(&m);
}

/* Thread 1: lock, access, steps. Where the times overlap, the caller knows by the instruction. */
static void marks_of_the_same_thread_are_tied_where_it_is_known(void **state)
{
    struct etch_mark marks[] = {{.tid = 1, .lo = {100, 0}, .hi = {150, 0}},
                                {.tid = 1, .lo = {160, 0}, .hi = {600, 0}},
                                {.tid = 1, .lo = {610, 0}, .hi = {700, 0}}};
    struct etch_mark_tie ties[] = {{.mark = 1, .record = 0, .mark_first = true},
                                   {.mark = 1, .record = 0, .sync = true, .mark_first = false}};
    struct made m;

    (void)state;
    make(&m);
    sync_at(&m, 1, 0, 200, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    access_at(&m, 1, 0, 500, true, 7);
    m.options.marks = marks;
    m.options.n_marks = 3;
    build(&m);
    assert_int_equal(ask_mark(&m, 0, 1, 0), ETCH_BEFORE);
    assert_int_equal(ask_mark(&m, 1, 1, 0), ETCH_UNORDERED);
    assert_int_equal(ask_mark(&m, 1, 0, 0), ETCH_UNORDERED);
    assert_int_equal(ask_mark(&m, 2, 0, 0), ETCH_AFTER);
    drop(&m);
    m.options.ties = ties;
    m.options.n_ties = 2;
    build(&m);
    assert_int_equal(ask_mark(&m, 1, 0, 0), ETCH_BEFORE);
    assert_int_equal(ask_mark(&m, 1, 1, 0), ETCH_AFTER);
    unmake(&m);
}

/* Thread 2 is made and joined by thread 1: that bounds its steps, which have no time. */
static void create_and_join_hold_for_marks(void **state)
{
    struct etch_mark mark = {.tid = 2, .lo = {0, ETCH_CPU_NONE}, .hi = {0, ETCH_CPU_NONE}};
    struct etch_evidence links[4];
    struct made m;
    size_t n;

    (void)state;
    make(&m);
    sync_at(&m, 1, 0, 100, ETCH__SYNC_OP__SYNC_THREAD_CREATE);
    sync_at(&m, 2, 1, 500, ETCH__SYNC_OP__SYNC_THREAD_START);
    sync_at(&m, 1, 0, 900, ETCH__SYNC_OP__SYNC_THREAD_JOIN);
    for (int i = 0; i < 3; i++)
        m.r.syncs.v[i].other = m.r.syncs.v[i].object;
    m.options.marks = &mark;
    m.options.n_marks = 1;
    build(&m);
    assert_int_equal(ask_mark(&m, 0, 1, 0), ETCH_AFTER);
    assert_int_equal(ask_mark(&m, 0, 1, 2), ETCH_BEFORE);
    n = etch_order_why(m.order, m.t.of_mark.v[0], event_of(&m, 1, 2), links, 4);
    assert_int_equal(n, 1);
    assert_int_equal(links[0].kind, ETCH_BY_JOIN);
    unmake(&m);
}

static void ties_to_what_is_not_there_are_refused(void **state)
{
    struct etch_mark mark = {.tid = 1};
    struct etch_mark_tie tie = {.mark = 0, .record = 3};
    struct etch_error err;
    struct made m;

    (void)state;
    make(&m);
    access_at(&m, 1, 0, 500, true, 7);
    m.options = (struct etch_timeline_options){.marks = &mark, .n_marks = 1, .ties = &tie, .n_ties = 1};
    assert_int_equal(etch_timeline_build(&m.t, &m.r, &m.options, &err), -1);
    unmake(&m);
}

/* ---- Records of one thread ---- */

/* An access and an unlock of one thread: by their stamps, if these are further apart than they may be off. */
static void records_of_a_thread_are_tied_beyond_their_error(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    access_at(&m, 1, 0, 500, true, 7);
    sync_at(&m, 1, 0, 506, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK);
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 1, 0), ETCH_BEFORE);
    drop(&m);
    m.r.syncs.v[0].tsc = 505;
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 1, 0), ETCH_UNORDERED);
    drop(&m);
    m.r.syncs.v[0].tsc = 620; /* on the other CPU: 510 to 530 */
    m.r.syncs.v[0].cpu = 1;
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 1, 0), ETCH_BEFORE);
    drop(&m);
    m.before.nonstop = 0; /* its clock may not be compared */
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 1, 0), ETCH_UNORDERED);
    unmake(&m);
}

/* A thread moves to a CPU whose clock is far behind, which nobody has measured: its records stay in the order in which
 * they were made. */
static void a_threads_records_are_not_sorted_by_clocks(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    m.r.clocks.n = 0;
    sync_at(&m, 1, 0, 1000000, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    sync_at(&m, 1, 1, 300, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK);
    build(&m);
    assert_int_equal(ask(&m, 1, 0, 1, 1), ETCH_BEFORE);
    unmake(&m);
}

/* Accesses bound each other's times by the stamps of the syncs between them. */
static void an_access_lies_behind_the_stamp_before_it(void **state)
{
    struct made m;
    const struct etch_event *e;

    (void)state;
    make(&m);
    access_at(&m, 1, 0, 100, true, 1);
    sync_at(&m, 1, 0, 300, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    access_at(&m, 1, 0, 500, true, 2);
    sync_at(&m, 1, 0, 600, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK);
    access_at(&m, 1, 0, 800, true, 3);
    build(&m);
    e = &m.t.events.v[event_of(&m, 0, 1)];
    assert_int_equal(e->lo.tsc, 300);
    assert_int_equal(e->hi.tsc, 505);
    e = &m.t.events.v[event_of(&m, 1, 1)];
    assert_int_equal(e->lo.tsc, 600);
    assert_int_equal(e->hi.tsc, 805);
    unmake(&m);
}

/* It is a plain store: another CPU may not see it yet when the thread takes its next stamp, but does when the thread
 * has got another lock. */
static void a_spin_unlock_is_seen_when_the_store_buffer_is_empty(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    sync_at(&m, 1, 0, 100, ETCH__SYNC_OP__SYNC_SPIN_LOCK);
    sync_at(&m, 1, 0, 200, ETCH__SYNC_OP__SYNC_SPIN_UNLOCK);
    sync_at(&m, 1, 0, 300, ETCH__SYNC_OP__SYNC_SEM_POST);
    sync_at(&m, 1, 0, 400, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    build(&m);
    assert_int_equal(m.t.events.v[event_of(&m, 1, 1)].hi.tsc, 400);
    drop(&m);
    m.r.syncs.v[3].result = 16;
    build(&m);
    assert_int_equal(m.t.events.v[event_of(&m, 1, 1)].hi.cpu, ETCH_CPU_NONE);
    unmake(&m);
}

static void context_switches_bound_what_lies_between(void **state)
{
    Etch__Switch in = ETCH__SWITCH__INIT;
    struct made m;

    (void)state;
    make(&m);
    access_at(&m, 1, 0, 100, true, 1);
    access_at(&m, 1, 0, 900, true, 2);
    in.tid = 1;
    in.in = true;
    in.tsc = 700;
    assert_true(etch_array_push(&m.r.switches, in));
    access_at(&m, 2, 0, 600, true, 3);
    build(&m);
    assert_int_equal(m.t.events.v[event_of(&m, 0, 1)].lo.tsc, 700);
    assert_int_equal(ask(&m, 0, 2, 0, 1), ETCH_BEFORE); /* over by 605, and that one began after 700 */
    unmake(&m);
}

/* ---- Losses ---- */

/* Two sections of a lock, the order of which only the lock tells: 1 has it when 2 is done waiting. */
static void make_sections(struct made *m)
{
    make(m);
    sync_at(m, 1, 0, 100, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    sync_at(m, 1, 0, 150, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK);
    sync_at(m, 1, 0, 500, ETCH__SYNC_OP__SYNC_MUTEX_INIT);
    sync_at(m, 2, 0, 90, ETCH__SYNC_OP__SYNC_MUTEX_INIT);
    sync_at(m, 2, 0, 400, ETCH__SYNC_OP__SYNC_MUTEX_LOCK);
    sync_at(m, 2, 0, 410, ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK);
}

static void lose(struct made *m, Etch__LossCause cause, uint32_t tid, uint32_t watch, uint64_t bytes)
{
    m->loss.cause = cause;
    m->loss.tid = tid;
    m->loss.watch = watch;
    m->loss.bytes = bytes;
    m->r.losses.n = 1;
}

static void a_loss_takes_what_it_may_have_taken(void **state)
{
    struct made m;

    (void)state;
    make_sections(&m);
    build(&m);
    assert_int_equal(ask(&m, 1, 1, 1, 4), ETCH_BEFORE);
    drop(&m);
    lose(&m, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 1, 0, 0); /* an unlock and a lock of thread 1 may be missing */
    build(&m);
    assert_int_equal(ask(&m, 1, 1, 1, 4), ETCH_UNORDERED);
    assert_int_equal(ask(&m, 1, 0, 1, 4), ETCH_BEFORE); /* the moment of the lock is still one */
    drop(&m);
    lose(&m, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, 1, 0); /* hits of a watch */
    build(&m);
    assert_int_equal(ask(&m, 1, 1, 1, 4), ETCH_BEFORE);
    drop(&m);
    lose(&m, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 1, 0, 4096); /* control flow */
    build(&m);
    assert_int_equal(ask(&m, 1, 1, 1, 4), ETCH_BEFORE);
    drop(&m);
    m.r.losses.n = 0;
    m.r.damaged = 1;
    build(&m);
    assert_int_equal(ask(&m, 1, 1, 1, 4), ETCH_UNORDERED);
    unmake(&m);
}

static void a_thread_that_only_lost_counts_too(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    for (int i = 0; i < 4; i++) { /* two threads enter a barrier, and leave it */
        sync_at(&m, (uint32_t)(1 + i % 2), 0, (uint64_t)(100 + 10 * i),
                i < 2 ? ETCH__SYNC_OP__SYNC_BARRIER_ENTER : ETCH__SYNC_OP__SYNC_BARRIER_LEAVE);
        m.r.syncs.v[i].result = i == 3 ? -1 : 0;
    }
    m.r.clocks.n = 0;
    build(&m);
    assert_int_equal(ask(&m, 1, 1, 1, 2), ETCH_BEFORE);
    drop(&m);
    lose(&m, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 3, 0, 0); /* a third may have taken part */
    build(&m);
    assert_int_equal(ask(&m, 1, 1, 1, 2), ETCH_UNORDERED);
    unmake(&m);
}

/* By values: the read of 7 is behind the write of 7. */
static void make_values(struct made *m)
{
    make(m);
    access_at(m, 1, 0, 500, true, 7);
    access_at(m, 2, 0, 510, false, 7);
}

static void values_need_every_access(void **state)
{
    struct made m;

    (void)state;
    make_values(&m);
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_BEFORE);
    drop(&m);
    lose(&m, ETCH__LOSS_CAUSE__LOSS_RATE_LIMITED, 0, 1, 0);
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_UNORDERED);
    drop(&m);
    m.loss.watch = 2; /* another one was cut */
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_BEFORE);
    drop(&m);
    m.watch.kernel_unseen = true;
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_UNORDERED);
    drop(&m);
    m.watch.kernel_unseen = false;
    m.watch.armed_tsc = 505; /* armed in one thread after the other, while they ran */
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_UNORDERED);
    drop(&m);
    m.watch.armed_tsc = 100;
    m.watch.reads = false;
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_UNORDERED);
    unmake(&m);
}

/* The first value counts only if it was read before anybody wrote. */
static void the_first_value_may_have_been_read_too_late(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    access_at(&m, 1, 0, 500, true, 7);
    access_at(&m, 2, 0, 510, false, 0);
    build(&m);
    assert_int_equal(ask(&m, 0, 1, 0, 0), ETCH_BEFORE);
    drop(&m);
    m.watch.initial_tsc = 505;
    build(&m);
    assert_int_equal(ask(&m, 0, 1, 0, 0), ETCH_UNORDERED);
    unmake(&m);
}

/* ---- Clocks ---- */

static void make_two_cpus(struct made *m)
{
    make(m);
    access_at(m, 1, 0, 500, true, 7);
    access_at(m, 2, 1, 5000, true, 8);
    sync_at(m, 2, 1, 4000, ETCH__SYNC_OP__SYNC_MUTEX_INIT);
}

static void a_clock_that_changed_orders_nothing(void **state)
{
    struct made m;

    (void)state;
    make_two_cpus(&m);
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_BEFORE);
    drop(&m);
    m.skew[1].lo = 111; /* after the run it lies elsewhere for certain */
    m.skew[1].hi = 130;
    build(&m);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_UNORDERED);
    assert_int_equal(m.t.clocks.changed, 1);
    unmake(&m);
}

static void an_unfit_clock_orders_nothing_across_cpus(void **state)
{
    struct made m;

    (void)state;
    make_two_cpus(&m);
    m.before.constant = 0;
    build(&m);
    assert_true(m.t.clocks.refused);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_UNORDERED);
    drop(&m);
    m.before.constant = 1;
    m.after.constant = 0; /* found out too late */
    build(&m);
    assert_true(m.t.clocks.refused);
    assert_int_equal(ask(&m, 0, 0, 0, 1), ETCH_UNORDERED);
    unmake(&m);
}

/* The recorder died before it could measure again: the line was fitted over 100 ns around 1,000, and is used at 6,000.
 */
static void a_line_is_less_certain_beyond_its_ends(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    m.perf.ns_zero = m.perf.tsc_zero = 1000;
    m.perf.span_ns = 100;
    m.r.clocks.n = 1;
    access_at(&m, 1, 0, 1050, true, 1);
    access_at(&m, 1, 0, 6000, true, 2);
    build(&m);
    assert_int_equal(m.t.events.v[event_of(&m, 0, 0)].hi.tsc, 1055);
    assert_int_equal(m.t.events.v[event_of(&m, 0, 1)].hi.tsc, 6500);
    drop(&m);
    m.r.accesses.v[1].perf_ns = UINT64_MAX / 2; /* beyond all use: no stamp at all */
    build(&m);
    assert_int_equal(m.t.events.v[event_of(&m, 0, 1)].hi.cpu, ETCH_CPU_NONE);
    unmake(&m);
}

/* A guest's ranges are wider by half of what was measured, on either side; a machine's are not. */
static void a_guest_has_a_margin(void **state)
{
    static char kvm[] = "KVM";
    struct made m;

    (void)state;
    make_two_cpus(&m);
    build(&m);
    assert_int_equal(m.t.clocks.margin, 0);
    assert_int_equal(m.t.clocks.cpus[1].lo, 90);
    drop(&m);
    m.host.hypervisor = kvm;
    build(&m);
    assert_int_equal(m.t.clocks.margin, 11);
    assert_int_equal(m.t.clocks.cpus[1].lo, 79);
    assert_int_equal(m.t.clocks.cpus[1].hi, 121);
    drop(&m);
    m.options.margin = 500;
    build(&m);
    assert_int_equal(m.t.clocks.cpus[1].hi, 610);
    unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_before_or_behind_an_access),
        cmocka_unit_test(a_step_without_time_says_nothing),
        cmocka_unit_test(a_step_of_some_cpu_is_bounded_by_all),
        cmocka_unit_test(marks_of_the_same_thread_are_tied_where_it_is_known),
        cmocka_unit_test(create_and_join_hold_for_marks),
        cmocka_unit_test(ties_to_what_is_not_there_are_refused),
        cmocka_unit_test(records_of_a_thread_are_tied_beyond_their_error),
        cmocka_unit_test(a_threads_records_are_not_sorted_by_clocks),
        cmocka_unit_test(an_access_lies_behind_the_stamp_before_it),
        cmocka_unit_test(a_spin_unlock_is_seen_when_the_store_buffer_is_empty),
        cmocka_unit_test(context_switches_bound_what_lies_between),
        cmocka_unit_test(a_loss_takes_what_it_may_have_taken),
        cmocka_unit_test(a_thread_that_only_lost_counts_too),
        cmocka_unit_test(values_need_every_access),
        cmocka_unit_test(the_first_value_may_have_been_read_too_late),
        cmocka_unit_test(a_clock_that_changed_orders_nothing),
        cmocka_unit_test(an_unfit_clock_orders_nothing_across_cpus),
        cmocka_unit_test(a_line_is_less_certain_beyond_its_ends),
        cmocka_unit_test(a_guest_has_a_margin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
