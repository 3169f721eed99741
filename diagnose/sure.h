/* SPDX-License-Identifier: MIT */
/* How many runs without a failure it takes to be sure that a failure is gone. Pure. */
#ifndef ETCH_DIAGNOSE_SURE_H
#define ETCH_DIAGNOSE_SURE_H

#include <stdint.h>

/* Runs that must pass before a failure is gone with probability `confidence` (0.95, 0.99), if `failed` of `of` runs
 * failed before. Takes the lower Wilson bound of the rate, to be on the safe side. 0: no number of runs is enough,
 * because nothing failed before. */
uint64_t etch_sure_runs(uint32_t failed, uint32_t of, double confidence);

/* The highest rate of failure that is still likely after `passed` runs without one. */
double etch_sure_rate(uint64_t passed, double confidence);

#endif
