/* SPDX-License-Identifier: MIT */
/* Etch's end of the rings of C++ exceptions: the one that a program ended with. */
#ifndef ETCH_COLLECTOR_SYNC_EXCEPTION_H
#define ETCH_COLLECTOR_SYNC_EXCEPTION_H

#include "collector/sync/ring.h"
#include "proto/etch.pb-c.h"

/* How thread `tid` came to std::terminate, to be freed with etch__exception__free_unpacked(). NULL: it did not, or
 * memory is short. The program may have written anything into `memory`. */
Etch__Exception *etch_sync_exception(const struct etch_sync_memory *memory, uint32_t tid);

#endif
