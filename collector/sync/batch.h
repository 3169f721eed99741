/* SPDX-License-Identifier: MIT */
/* Synchronisation events from the rings to the bundle: many events in one record. */
#ifndef ETCH_COLLECTOR_SYNC_BATCH_H
#define ETCH_COLLECTOR_SYNC_BATCH_H

#include "collector/sink.h"
#include "collector/sync/reader.h"

#define ETCH_SYNC_BATCH_MAX 256u

struct etch_sync_batch {
    Etch__Sync syncs[ETCH_SYNC_BATCH_MAX];
    size_t n;
    const struct etch_sink *sink;
    /* Called with the address of the code that each event comes from; NULL: not wanted. */
    void (*code)(void *context, uint64_t ip);
    void *context;
};

/* Writes all new events and losses to the sink. `last` and the result are those of etch_sync_reader_drain(). */
uint64_t etch_sync_batch_take(struct etch_sync_batch *batch, struct etch_sync_reader *reader, bool last);

#endif
