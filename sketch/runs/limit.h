/* SPDX-License-Identifier: MIT */
/* Limits of what is kept of a run. A limit that dropped something is a loss of the run, with a count. */
#ifndef ETCH_SKETCH_RUNS_LIMIT_H
#define ETCH_SKETCH_RUNS_LIMIT_H

#include "sketch/run.h"

/* Adds a loss of `events` dropped items of thread `tid`; nothing for 0 items. The loss does not make the run `lost`:
 * its statements and accesses are complete. Returns 0, or -1 when memory is short. */
int etch_run_limit(struct etch_run *run, uint32_t tid, uint64_t events, const char *detail);

#endif
