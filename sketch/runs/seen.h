/* SPDX-License-Identifier: MIT */
/* The executed statements of a run without control flow. A watched access, a synchronisation and a frame of the stack
 * at the end each prove that their statement ran, and in which order. */
#ifndef ETCH_SKETCH_RUNS_SEEN_H
#define ETCH_SKETCH_RUNS_SEEN_H

#include "sketch/run.h"

/* Fills the visits of a run whose accesses, syncs and stacks are there, and says to its accesses which visit they are
 * of. Returns 0, or -1 when memory is short. */
int etch_run_see(struct etch_run *run, const struct etch_names *names);

#endif
