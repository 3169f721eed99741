/* SPDX-License-Identifier: MIT */
/* The waits of a run that hangs, from its synchronisation events: rings of locks, and wake-ups that came before the
 * wait or never. */
#ifndef ETCH_SKETCH_PREDICT_HANG_H
#define ETCH_SKETCH_PREDICT_HANG_H

#include "sketch/run.h"

#define ETCH_HANG_PLACES 8u

enum etch_hang_kind {
    ETCH_HANG_RING,     /* of locks: each thread holds the lock that the thread before it waits for */
    ETCH_HANG_LONG,     /* a ring with too many threads for `places`; it has no places */
    ETCH_HANG_TOO_LATE, /* the last wake-up came before the wait */
    ETCH_HANG_NEVER,    /* no wake-up at all */
};

/* The places of a ring: for each thread in turn, where it took the lock that it holds, and where it waits. The places
 * of a wake-up that came too early: its place and the wait's place. Otherwise: the wait's place. A ring begins with the
 * thread whose wait has the lowest number. */
struct etch_hang {
    enum etch_hang_kind kind;
    uint32_t n, places[ETCH_HANG_PLACES];
    uint32_t signal, wait; /* of a wake-up: syncs of the run */
};

typedef void etch_hang_visitor(void *context, const struct etch_hang *hang);

/* Calls `visit` for each; nothing is claimed of a run that does not hang or whose events are not all there. */
void etch_hang_find(const struct etch_run *run, etch_hang_visitor *visit, void *context);

#endif
