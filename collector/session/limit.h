/* SPDX-License-Identifier: MIT */
/* A bound on a bundle's size. Beyond the bound, records of frequent kinds are left out and counted. Rare records, and
 * the records about the end of the run, are still written. Private to the collector. */
#ifndef ETCH_COLLECTOR_SESSION_LIMIT_H
#define ETCH_COLLECTOR_SESSION_LIMIT_H

#include "proto/bundle.h"

#include <stdio.h>

struct etch_limit {
    uint64_t bytes, events; /* left out */
};

/* Returns true if `bytes` of control flow or `events` of another kind are beyond the bound `most`, and counts them. 0:
 * no bound. */
static inline bool etch_limit_reached(struct etch_limit *limit, const struct etch_bundle_writer *bundle, uint64_t most,
                                      uint64_t bytes, uint64_t events)
{
    if (!most || etch_bundle_written(bundle) + bytes <= most)
        return false;
    limit->bytes += bytes;
    limit->events += events;
    return true;
}

/* Fills in the loss; its text lies in `detail`. False if nothing was left out. */
static inline bool etch_limit_loss(const struct etch_limit *limit, uint64_t most, Etch__Loss *loss, char detail[120])
{
    if (!limit->bytes && !limit->events)
        return false;
    snprintf(detail, 120, "the bundle reached its bound of %llu MiB (--max-size)", (unsigned long long)(most >> 20));
    loss->cause = ETCH__LOSS_CAUSE__LOSS_LIMIT;
    loss->bytes = limit->bytes;
    loss->events = limit->events;
    loss->detail = detail;
    return true;
}

#endif
