/* SPDX-License-Identifier: MIT */
/* Synchronisation events from the rings to the bundle; see batch.h. */
#include "collector/sync/batch.h"

static void flush(struct etch_sync_batch *b)
{
    Etch__Syncs syncs = ETCH__SYNCS__INIT;
    Etch__Sync *pointers[ETCH_SYNC_BATCH_MAX];

    for (size_t i = 0; i < b->n; i++)
        pointers[i] = &b->syncs[i];
    syncs.n_syncs = b->n;
    syncs.syncs = pointers;
    if (b->n)
        b->sink->write(b->sink->context, ETCH__RECORD__BODY_SYNCS, &syncs);
    b->n = 0;
}

static void on_event(void *context, uint32_t tid, const struct etch_sync_event *event)
{
    struct etch_sync_batch *b = context;

    etch_sync_event_record(&b->syncs[b->n++], tid, event);
    if (b->code)
        b->code(b->context, event->caller);
    if (b->n == ETCH_SYNC_BATCH_MAX)
        flush(b);
}

static void on_lost(void *context, uint32_t tid, uint64_t events)
{
    const struct etch_sync_batch *b = context;

    if (tid)
        etch_sink_lose(b->sink, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, tid, events,
                       "synchronisation events came faster than they could be read");
    else
        etch_sink_lose(b->sink, ETCH__LOSS_CAUSE__LOSS_NO_RING, 0, events,
                       "synchronisation events of threads that had no ring, or may not read the time");
}

uint64_t etch_sync_batch_take(struct etch_sync_batch *b, struct etch_sync_reader *reader, bool last)
{
    const struct etch_sync_sink sink = {b, on_event, on_lost};
    uint64_t fullest = etch_sync_reader_drain(reader, &sink, last);

    flush(b);
    return fullest;
}
