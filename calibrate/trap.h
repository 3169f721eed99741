/* SPDX-License-Identifier: MIT */
/* How long after a watched access its stamp is taken: a hardware breakpoint on a variable of our own, tripped with
 * known timing. */
#ifndef ETCH_CALIBRATE_TRAP_H
#define ETCH_CALIBRATE_TRAP_H

#include "base/error.h"
#include "calibrate/perfclock.h"

#include <signal.h>

#define ETCH_TRAP_SCHEDULER_CLOCK (-1) /* perf's own, rather than one with a clock id */

/* On some virtual machines a debug trap comes, very rarely, without its cause. The kernel does not recognise the trap
 * as a watchpoint's, and its SIGTRAP ends a process that watches a variable of its own. SIGTRAP is ignored between
 * these two calls. */
struct etch_trap_guard {
    struct sigaction action;
    sigset_t mask;
};

void etch_trap_guard_begin(struct etch_trap_guard *guard);
void etch_trap_guard_end(const struct etch_trap_guard *guard);

/* Trips a write watchpoint up to n times; each sample is a pair: stamp before the access, the kernel's time of the
 * trap, stamp after. Samples taken across a migration are left out. Returns how many, or -1 with `err` set (no
 * watchpoints, no permission). */
int64_t etch_trap_take(struct etch_clock_pair *pairs, size_t n, int clock, struct etch_error *err);

struct etch_trap_latency {
    uint64_t lo, hi; /* cycles from access to stamp, as seen; not a promise: a host may stop the CPU in between */
    uint64_t median;
    size_t samples;
    size_t
        outside; /* samples whose converted stamp does not lie between the stamps before and after: the line is wrong */
};

/* The latency by `pairs`, whose clock has the line `fit`. Returns 0, or -1 with `err` set. */
int etch_trap_latency(const struct etch_clock_pair *pairs, size_t n, const struct etch_clock_fit *fit,
                      struct etch_trap_latency *latency, struct etch_error *err);

#endif
