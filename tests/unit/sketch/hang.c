/* SPDX-License-Identifier: MIT */
/* What hanging threads wait for, over hand-made synchronisation events. */
#include "sketch/predict/hang.h"
#include "sketch/runs/order.h"
#include "sketch/runs/seen.h"

#include "decoder/recording.h"

#include "tests/unit/test.h"

#include <string.h>

#define LOCK ETCH__SYNC_OP__SYNC_MUTEX_LOCK
#define UNLOCK ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK
#define BLOCKED ETCH__SYNC_OP__SYNC_MUTEX_BLOCKED
#define WAIT ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN
#define SIGNAL ETCH__SYNC_OP__SYNC_COND_SIGNAL

struct reported {
    struct etch_hang hangs[8];
    size_t n;
};

static void report(void *context, const struct etch_hang *hang)
{
    struct reported *reported = context;

    assert_true(reported->n < 8);
    reported->hangs[reported->n++] = *hang;
}

static struct etch_run *begin(uint32_t threads)
{
    struct etch_run *run = calloc(1, sizeof(*run));

    run->failing = run->synced = true;
    run->failure = malloc(sizeof(*run->failure));
    etch__failure__init(run->failure);
    run->failure->kind = ETCH__FAILURE_KIND__FAILURE_HANG;
    for (uint32_t i = 0; i < threads; i++) {
        struct etch_run_thread t = {.tid = 100 + i, .parent = ETCH_NOWHERE, .made_at = ETCH_NOWHERE};

        assert_true(etch_array_push(&run->threads, t));
    }
    return run;
}

static void put(struct etch_run *run, uint32_t thread, Etch__SyncOp op, uint64_t object, uint64_t other, uint32_t place)
{
    struct etch_run_sync s = {.thread = thread,
                              .op = op,
                              .object = object,
                              .other = other,
                              .place = place,
                              .tsc = 100 * (run->syncs.n + 1),
                              .event = ETCH_NOWHERE};

    assert_true(etch_array_push(&run->syncs, s));
}

/* Orders the events by their times, on one CPU. */
static void order(struct etch_run *run)
{
    struct etch_recording recording = {0};
    Etch__Clock clock = ETCH__CLOCK__INIT, *clocks[] = {&clock};
    struct etch_error err;

    clock.phase = ETCH__CLOCK_PHASE__CLOCK_BEFORE;
    clock.constant = clock.nonstop = true;
    recording.clocks.v = clocks;
    recording.clocks.n = 1;
    for (size_t i = 0; i < run->syncs.n; i++) {
        Etch__Sync s = ETCH__SYNC__INIT;

        s.tsc = run->syncs.v[i].tsc;
        s.tid = 100 + run->syncs.v[i].thread;
        s.op = run->syncs.v[i].op;
        s.object = run->syncs.v[i].object;
        s.other = run->syncs.v[i].other;
        assert_true(etch_array_push(&recording.syncs, s));
    }
    assert_int_equal(etch_run_order_build(&run->order, &recording, NULL, &err), 0);
    for (size_t i = 0; i < run->syncs.n; i++)
        run->syncs.v[i].event = etch_run_order_event(run->order, i, 1);
    etch_array_free(&recording.syncs);
}

static struct reported find(const struct etch_run *run)
{
    struct reported reported = {.n = 0};

    etch_hang_find(run, report, &reported);
    return reported;
}

static void find_ring(void **state)
{
    struct etch_run *run = begin(2);
    struct reported reported;

    (void)state;
    put(run, 0, LOCK, 0xa, 0, 1);
    put(run, 0, BLOCKED, 0xb, 0, 2);
    put(run, 1, LOCK, 0xb, 0, 3);
    put(run, 1, BLOCKED, 0xa, 0, 4);
    reported = find(run);
    assert_int_equal(reported.n, 1);
    assert_int_equal(reported.hangs[0].kind, ETCH_HANG_RING);
    assert_int_equal(reported.hangs[0].n, 4);
    assert_memory_equal(reported.hangs[0].places, ((const uint32_t[]){1, 2, 3, 4}), 4 * sizeof(uint32_t));
    run->synced = false; /* some events are missing: nothing is claimed */
    assert_int_equal(find(run).n, 0);
    run->synced = true;
    run->syncs.v[2].op = UNLOCK; /* it holds nothing: no ring */
    assert_int_equal(find(run).n, 0);
    etch_run_free(run);
}

static void find_own_lock(void **state)
{
    struct etch_run *run = begin(2);
    struct reported reported;

    (void)state;
    put(run, 0, LOCK, 0xa, 0, 1);
    put(run, 0, BLOCKED, 0xa, 0, 2);
    reported = find(run);
    assert_int_equal(reported.n, 1);
    assert_int_equal(reported.hangs[0].n, 2);
    assert_memory_equal(reported.hangs[0].places, ((const uint32_t[]){1, 2}), 2 * sizeof(uint32_t));
    etch_run_free(run);
}

/* A thread that waits for a signal has given its lock up. */
static void wait_gives_lock_up(void **state)
{
    struct etch_run *run = begin(2);

    (void)state;
    put(run, 0, LOCK, 0xa, 0, 1);
    put(run, 0, LOCK, 0xb, 0, 5);
    put(run, 0, WAIT, 0xc, 0xa, 2);
    put(run, 1, LOCK, 0xd, 0, 3);
    put(run, 1, BLOCKED, 0xa, 0, 4);
    for (size_t i = 0; i < find(run).n; i++)
        assert_int_not_equal(find(run).hangs[i].kind, ETCH_HANG_RING);
    etch_run_free(run);
}

static void find_lost_wakeup(void **state)
{
    struct etch_run *run = begin(2);
    struct reported reported;

    (void)state;
    put(run, 1, SIGNAL, 0xc, 0, 3);
    put(run, 1, UNLOCK, 0xa, 0, 9);
    put(run, 0, LOCK, 0xa, 0, 1);
    put(run, 0, WAIT, 0xc, 0xa, 2);
    order(run);
    reported = find(run);
    assert_int_equal(reported.n, 1);
    assert_int_equal(reported.hangs[0].kind, ETCH_HANG_TOO_LATE);
    assert_memory_equal(reported.hangs[0].places, ((const uint32_t[]){3, 2}), 2 * sizeof(uint32_t));
    etch_run_free(run);
}

/* A signal that may have come after the wait began explains nothing. */
static void claim_no_late_signal(void **state)
{
    struct etch_run *run = begin(2);

    (void)state;
    put(run, 0, LOCK, 0xa, 0, 1);
    put(run, 0, WAIT, 0xc, 0xa, 2);
    put(run, 1, SIGNAL, 0xc, 0, 3);
    put(run, 1, UNLOCK, 0xa, 0, 9);
    order(run);
    assert_int_equal(find(run).n, 0);
    etch_run_free(run);
}

static void find_no_signal(void **state)
{
    struct etch_run *run = begin(1);
    struct reported reported;

    (void)state;
    put(run, 0, WAIT, 0xc, 0xa, 2);
    reported = find(run);
    assert_int_equal(reported.n, 1);
    assert_int_equal(reported.hangs[0].kind, ETCH_HANG_NEVER);
    etch_run_free(run);
}

/* A chain of waits may end at a lock that nobody holds. A ring of too many threads is reported as such. */
static void follow_long_chain(void **state)
{
    const uint32_t threads = ETCH_HANG_PLACES;
    struct etch_run *run = begin(threads);
    struct reported reported;

    (void)state;
    for (uint32_t i = 0; i < threads; i++) {
        put(run, i, LOCK, 0xa0 + i, 0, 10);
        put(run, i, BLOCKED, 0xa0 + i + 1, 0, 20); /* the last: one that is not there */
    }
    assert_int_equal(find(run).n, 0);
    etch_run_free(run);
    run = begin(ETCH_HANG_PLACES / 2 + 1);
    for (uint32_t i = 0; i <= ETCH_HANG_PLACES / 2; i++) {
        put(run, i, LOCK, 0xa0 + i, 0, 10);
        put(run, i, BLOCKED, 0xa0 + i + 1, 0, 20);
    }
    assert_int_equal(find(run).n, 0);
    etch_run_free(run);
    run = begin(threads);
    for (uint32_t i = 0; i < threads; i++) {
        put(run, i, LOCK, 0xa0 + i, 0, 10);
        put(run, i, BLOCKED, 0xa0 + (i + 1) % threads, 0, 20);
    }
    reported = find(run);
    assert_int_equal(reported.n, 1);
    assert_int_equal(reported.hangs[0].kind, ETCH_HANG_LONG);
    etch_run_free(run);
}

/* ---- Without control flow: what events and stacks prove to have run ---- */

static void see_visits(void **state)
{
    struct etch_names names = {0};
    struct etch_run *run = begin(1);
    struct etch_run_access a = {.place = 0, .operand = 0, .read = true, .event = ETCH_NOWHERE};

    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(etch_names_place(&names, "a.c", 10 + i, i == 3 ? "main" : "f"), i);
    a.hi = 50;
    assert_true(etch_array_push(&run->accesses, a)); /* reads at 0, */
    a.hi = 60;
    a.write = true;
    assert_true(etch_array_push(&run->accesses, a)); /* writes in the same access group, */
    a.hi = 250;
    a.write = false;
    assert_true(etch_array_push(&run->accesses, a)); /* and reads again after the lock */
    put(run, 0, LOCK, 0xa, 0, 1);                    /* at 100 */
    assert_true(etch_array_push(&run->threads.v[0].stack, 2));
    assert_true(etch_array_push(&run->threads.v[0].stack, 3));
    assert_int_equal(etch_run_see(run, &names), 0);
    assert_int_equal(run->visits.n, 4);
    assert_int_equal(run->visits.v[0].place, 3); /* main's call, before all that f() did */
    assert_int_equal(run->visits.v[1].place, 1);
    assert_int_equal(run->visits.v[2].place, 0);
    assert_int_equal(run->visits.v[2].count, 2);
    assert_int_equal(run->visits.v[3].place, 2); /* where it stands */
    assert_int_equal(run->accesses.v[0].nth, 1);
    assert_int_equal(run->accesses.v[1].nth, 1);
    assert_int_equal(run->accesses.v[2].nth, 2);
    assert_true(run->accesses.v[1].seq < run->accesses.v[2].seq);
    etch_run_free(run);
    etch_names_release(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_ring),
        cmocka_unit_test(find_own_lock),
        cmocka_unit_test(wait_gives_lock_up),
        cmocka_unit_test(find_lost_wakeup),
        cmocka_unit_test(claim_no_late_signal),
        cmocka_unit_test(find_no_signal),
        cmocka_unit_test(follow_long_chain),
        cmocka_unit_test(see_visits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
