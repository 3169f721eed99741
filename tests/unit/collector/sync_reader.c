/* SPDX-License-Identifier: MIT */
/* The reader of synchronisation rings, against rings that this test writes itself, in good order and not. */
#include "collector/sync/reader.h"
#include "tests/unit/test.h"

struct seen {
    uint64_t events, lost, last;
    uint32_t tid;
};

static void on_event(void *context, uint32_t tid, const struct etch_sync_event *event)
{
    struct seen *seen = context;

    seen->events++;
    seen->tid = tid;
    assert_int_equal(event->object, event->sequence - 1);
    seen->last = event->object;
}

static void on_lost(void *context, uint32_t tid, uint64_t events)
{
    (void)tid;
    ((struct seen *)context)->lost += events;
}

static struct etch_sync_ring *use(struct etch_sync_memory *m, unsigned i)
{
    m->rings[i].state = ETCH_SYNC_USED;
    m->rings[i].tid = 100 + i;
    m->claimed = i + 1;
    return &m->rings[i];
}

static void put(struct etch_sync_ring *ring)
{
    uint64_t index = ring->next++;
    struct etch_sync_event *event = &ring->events[index % ETCH_SYNC_EVENTS];

    event->object = index;
    event->sequence = index + 1;
}

/* As the library does it: from the next lap on the events are in a large ring. */
static void grow(struct etch_sync_memory *m, struct etch_sync_ring *ring)
{
    ring->large = m->larges++;
    ring->grown = ring->next + ETCH_SYNC_EVENTS / 2;
}

static void put_grown(struct etch_sync_memory *m, struct etch_sync_ring *ring)
{
    uint64_t index = ring->next++;
    struct etch_sync_event *event = etch_sync_place(m, ring, ring->grown, ring->large, index);

    event->object = index;
    event->sequence = index + 1;
}

static int make(void **state)
{
    struct etch_sync_reader *reader;
    struct etch_error err;

    if (etch_sync_reader_new(&reader, &err) < 0)
        return -1;
    *state = reader;
    return 0;
}

static int unmake(void **state)
{
    etch_sync_reader_free(*state);
    return 0;
}

static void drain_in_order(void **state)
{
    struct seen seen = {0};
    const struct etch_sync_sink sink = {&seen, on_event, on_lost};
    struct etch_sync_ring *ring = use(etch_sync_reader_memory(*state), 3);

    for (int i = 0; i < 10; i++)
        put(ring);
    assert_int_equal(etch_sync_reader_drain(*state, &sink, 0), 10);
    assert_true(seen.events == 10 && seen.lost == 0 && seen.tid == 103);
    assert_int_equal(etch_sync_reader_drain(*state, &sink, 0), 0);
    assert_int_equal(seen.events, 10);
}

static void drain_grown(void **state)
{
    struct seen seen = {0};
    const struct etch_sync_sink sink = {&seen, on_event, on_lost};
    struct etch_sync_memory *m = etch_sync_reader_memory(*state);
    struct etch_sync_ring *ring = use(m, 5);

    for (unsigned i = 0; i < ETCH_SYNC_EVENTS / 2; i++)
        put(ring);
    grow(m, ring);
    for (unsigned i = 0; i < ETCH_SYNC_EVENTS / 2 + ETCH_SYNC_LARGE; i++)
        put_grown(m, ring);
    etch_sync_reader_drain(*state, &sink, 0);
    assert_int_equal(seen.events, ETCH_SYNC_EVENTS + ETCH_SYNC_LARGE);
    assert_int_equal(seen.lost, 0);
    assert_int_equal(ring->read, seen.events);
    for (unsigned i = 0; i < ETCH_SYNC_LARGE + 7; i++)
        put_grown(m, ring);
    etch_sync_reader_drain(*state, &sink, 0);
    assert_int_equal(seen.lost, 7);
    assert_int_equal(seen.last, ring->next - 1);
}

/* What the program may write there leads nowhere else. */
static void drain_grown_nonsense(void **state)
{
    struct seen seen = {0};
    const struct etch_sync_sink sink = {&seen, on_event, on_lost};
    struct etch_sync_ring *ring = use(etch_sync_reader_memory(*state), 0);
    const uint64_t numbers[] = {1, ETCH_SYNC_EVENTS, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2};

    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++) {
            ring->large = UINT32_MAX - (uint32_t)k;
            ring->grown = numbers[i];
            ring->next = numbers[k];
            etch_sync_reader_drain(*state, &sink, 1);
        }
    assert_int_equal(seen.events, 0);
}

static void drain_overtaken(void **state)
{
    struct seen seen = {0};
    const struct etch_sync_sink sink = {&seen, on_event, on_lost};
    struct etch_sync_ring *ring = use(etch_sync_reader_memory(*state), 0);

    for (unsigned i = 0; i < ETCH_SYNC_EVENTS + 25; i++)
        put(ring);
    etch_sync_reader_drain(*state, &sink, 0);
    assert_true(seen.lost == 25 && seen.events == ETCH_SYNC_EVENTS && seen.last == ETCH_SYNC_EVENTS + 24);
}

static void drain_waits_for_an_unfinished_one(void **state)
{
    struct seen seen = {0};
    const struct etch_sync_sink sink = {&seen, on_event, on_lost};
    struct etch_sync_ring *ring = use(etch_sync_reader_memory(*state), 0);

    put(ring);
    put(ring);
    ring->events[0].sequence = 0; /* its writer is in a signal handler that wrote the second */
    etch_sync_reader_drain(*state, &sink, 0);
    assert_true(seen.events == 0 && seen.lost == 0);
    ring->events[0].sequence = 1;
    etch_sync_reader_drain(*state, &sink, 0);
    assert_int_equal(seen.events, 2);
    put(ring);
    ring->events[2].sequence = 0;
    etch_sync_reader_drain(*state, &sink, 1); /* it will never be finished */
    assert_true(seen.events == 2 && seen.lost == 1);
}

static void drain_frees_ended_rings(void **state)
{
    struct seen seen = {0};
    const struct etch_sync_sink sink = {&seen, on_event, on_lost};
    struct etch_sync_ring *ring = use(etch_sync_reader_memory(*state), 0);

    put(ring);
    ring->state = ETCH_SYNC_ENDED;
    etch_sync_reader_drain(*state, &sink, 0);
    assert_int_equal(seen.events, 1);
    assert_int_equal(ring->state, ETCH_SYNC_FREE);
}

static void drain_nonsense(void **state)
{
    struct seen seen = {0};
    const struct etch_sync_sink sink = {&seen, on_event, on_lost};
    struct etch_sync_memory *m = etch_sync_reader_memory(*state);
    struct etch_sync_ring *ring = use(m, 0);

    put(ring);
    etch_sync_reader_drain(*state, &sink, 0);
    ring->next = 0; /* backwards */
    etch_sync_reader_drain(*state, &sink, 0);
    ring->next = UINT64_MAX;
    m->claimed = UINT32_MAX;
    m->unplaced = 5;
    etch_sync_reader_drain(*state, &sink, 0);
    assert_int_equal(seen.events, 1);
    assert_true(seen.lost > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drain_in_order, make, unmake),
        cmocka_unit_test_setup_teardown(drain_grown, make, unmake),
        cmocka_unit_test_setup_teardown(drain_grown_nonsense, make, unmake),
        cmocka_unit_test_setup_teardown(drain_overtaken, make, unmake),
        cmocka_unit_test_setup_teardown(drain_waits_for_an_unfinished_one, make, unmake),
        cmocka_unit_test_setup_teardown(drain_frees_ended_rings, make, unmake),
        cmocka_unit_test_setup_teardown(drain_nonsense, make, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
