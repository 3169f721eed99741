/* SPDX-License-Identifier: MIT */
/* Watched accesses on their way to the bundle: many accesses in one record. */
#ifndef ETCH_COLLECTOR_SESSION_BATCH_H
#define ETCH_COLLECTOR_SESSION_BATCH_H

#include "collector/sink.h"

#define ETCH_BATCH_MAX 2048u

struct etch_batch {
    Etch__Access accesses[ETCH_BATCH_MAX];
    size_t n;
};

/* Adds an access to a batch that is not full; the caller fills it in. */
Etch__Access *etch_batch_add(struct etch_batch *batch);

/* Writes the record, if there are accesses, and empties the batch. */
void etch_batch_flush(struct etch_batch *batch, const struct etch_sink *sink);

#endif
