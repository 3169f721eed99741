/* SPDX-License-Identifier: MIT */
/* Private: what is interesting in a run with surw. A run in which all shared accesses are interesting has too many
 * orders; a run in which only the accesses to one object are interesting tries each order of these soon. */
#ifndef ETCH_COLLECTOR_LAB_CHOOSE_H
#define ETCH_COLLECTOR_LAB_CHOOSE_H

#include "collector/lab/layout.h"

#include <stddef.h>

/* Draws one or two objects out of an earlier run that two threads used and one wrote to; if there are any, of those
 * that no lock protects. Returns the number of instructions that used them, and how often each thread came to them; 0
 * if there is no such object, and `expected` is as it was. */
uint32_t etch_lab_choose(const struct etch_lab_event *events, size_t n, uint64_t seed, unsigned objects,
                         uint64_t sites[ETCH_LAB_CHOSEN], uint64_t expected[ETCH_LAB_THREADS]);

#endif
