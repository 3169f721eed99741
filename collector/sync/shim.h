/* SPDX-License-Identifier: MIT */
/* Private to the preloaded library: what its parts have of each other. */
#ifndef ETCH_COLLECTOR_SYNC_SHIM_H
#define ETCH_COLLECTOR_SYNC_SHIM_H

#include "collector/sync/ring.h"

/* The calling thread's ring of exceptions, and the thread's id. NULL: not recording, or no ring is left. */
struct etch_throw_ring *etch_shim_throws(uint32_t *tid);

uint64_t etch_shim_stamp(void);

#endif
