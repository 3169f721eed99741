/* SPDX-License-Identifier: MIT */
/* Critical sections, and what the making and joining of threads orders, in one run of the lab. Pure functions over the
 * events of the run. */
#ifndef ETCH_DIAGNOSE_REGIONS_H
#define ETCH_DIAGNOSE_REGIONS_H

#include "diagnose/orders.h"

/* The event at which the thread of event `i` took `lock`, if it holds the lock at `i`; UINT32_MAX if it does not. A
 * thread holds a lock at its release, too. */
uint32_t etch_region_begin(struct etch_lab_events events, uint32_t i, uint64_t lock);

/* The event at which the thread of `i` in `one` took the outermost of the locks that it holds at `i` and that the
 * thread of `k` in `other` holds at `k`; UINT32_MAX if they have no lock in common. */
uint32_t etch_region_common(struct etch_lab_events one, uint32_t i, struct etch_lab_events other, uint32_t k);

/* The event at which the lock taken at `begin` is released, or the last one of the run. */
uint32_t etch_region_end(struct etch_lab_events events, uint32_t begin);

/* True if no schedule has event `k` before event `i`: the thread of `i` made the thread of `k` later, or the thread of
 * `k` waited for the end of the thread of `i`, directly or through other threads. */
bool etch_region_is_ordered(struct etch_lab_events events, uint32_t i, uint32_t k);

#endif
