/* SPDX-License-Identifier: MIT */
/* The memory that a program shares with the reader of synchronisation events and exceptions: the program may write
 * anything there. An input is a list of (place, eight bytes), put into the heads, the first rings and their throws. */
#include "collector/sync/exception.h"
#include "collector/sync/reader.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_event(void *context, uint32_t tid, const struct etch_sync_event *event)
{
    Etch__Sync sync;

    (void)context;
    etch_sync_event_record(&sync, tid, event);
}

static void on_lost(void *context, uint32_t tid, uint64_t events)
{
    (void)context;
    (void)tid;
    (void)events;
}

static void put(struct etch_sync_memory *m, uint32_t where, const uint8_t *bytes)
{
    struct etch_sync_ring *ring = &m->rings[where >> 28 & 1];
    struct etch_throw_ring *throws = &m->throws[where >> 28 & 1];
    struct {
        void *at;
        size_t size;
    } const parts[] = {{&m->pid, offsetof(struct etch_sync_memory, emulated) - offsetof(struct etch_sync_memory, pid)},
                       {ring, 64},
                       {ring->events, 16 * sizeof(ring->events[0])},
                       {throws, offsetof(struct etch_throw_ring, throws) + 2 * sizeof(throws->throws[0])}};
    unsigned part = where >> 30;

    memcpy((uint8_t *)parts[part].at + (where & 0xffffff) % (parts[part].size - 8), bytes, 8);
}

/* The memory is large, so one serves all inputs: a ring that begins anew makes the reader begin anew. */
static void begin(struct etch_sync_reader *reader, struct etch_sync_memory *m, const struct etch_sync_sink *sink)
{
    for (unsigned i = 0; i < 2; i++) {
        memset(&m->rings[i], 0, 64 + 16 * sizeof(m->rings[i].events[0]));
        memset(&m->throws[i], 0, offsetof(struct etch_throw_ring, throws) + 2 * sizeof(m->throws[i].throws[0]));
        m->rings[i].state = ETCH_SYNC_USED;
    }
    m->pid = 0;
    m->unplaced = 0;
    m->claimed = 2;
    etch_sync_reader_drain(reader, sink, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct etch_sync_sink sink = {NULL, on_event, on_lost};
    static struct etch_sync_reader *reader;
    struct etch_sync_memory *m;
    struct etch_error err;
    Etch__Exception *e;

    if (!reader && etch_sync_reader_new(&reader, &err) < 0)
        return -1;
    m = etch_sync_reader_memory(reader);
    begin(reader, m, &sink);
    for (size_t at = 0; at + 12 <= size; at += 12) {
        uint32_t where;

        memcpy(&where, data + at, 4);
        put(m, where, data + at + 4);
        if (where & 0x1000000) /* in between, as it does */
            etch_sync_reader_drain(reader, &sink, 0);
    }
    etch_sync_reader_drain(reader, &sink, 1);
    e = etch_sync_exception(m, 1);
    if (e)
        etch__exception__free_unpacked(e, NULL);
    return 0;
}
