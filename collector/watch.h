/* SPDX-License-Identifier: MIT */
/* Hardware watchpoints through perf: one event for each watch and CPU, inherited by every thread that is made later,
 * all of one CPU into one ring. The program does not stop at a hit; the kernel writes the sample. The events live as
 * long as their descriptors: whatever happens to etch, no breakpoint is left behind. */
#ifndef ETCH_COLLECTOR_WATCH_H
#define ETCH_COLLECTOR_WATCH_H

#include "base/error.h"
#include "collector/hits.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ETCH_WATCH_SLOTS 4u /* x86's debug registers */

struct etch_watches;

struct etch_watch_budget {
    uint64_t hits_per_s; /* 0: no limit */
    double share;        /* of one CPU, by the measured cost of a hit; 0: no limit */
};

int etch_watches_new(struct etch_watches **watches, size_t ring_bytes, const struct etch_watch_budget *budget,
                     struct etch_error *err);
void etch_watches_free(struct etch_watches *watches);

/* Hits by code of [start, end), the program's own, come without the stack: their instruction says all. */
void etch_watches_set_own(struct etch_watches *watches, uint64_t start, uint64_t end);

/* Arms a watch in a thread and all that it will make. `watch` is the caller's number, below 64. Returns 0, 1 where
 * the thread has ended, or -1 with `err` set; then nothing of this call is left armed. */
int etch_watches_arm(struct etch_watches *watches, uint32_t watch, pid_t tid, uint64_t address, uint32_t size,
                     bool reads, struct etch_error *err);

/* A one-shot stop of the thread, and those that it will make, before the instruction at `address`: it gets SIGTRAP
 * with si_code TRAP_PERF, which the tracer swallows. */
int etch_watches_arm_site(struct etch_watches *watches, uint32_t watch, pid_t tid, uint64_t address,
                          struct etch_error *err);
void etch_watches_disarm_site(struct etch_watches *watches, uint32_t watch);
void etch_watches_disarm_all(struct etch_watches *watches);

struct etch_watch_sink {
    void *context;
    void (*hit)(void *context, uint32_t watch, const struct etch_hit *hit);
    void (*lost)(void *context, uint32_t watch, uint64_t hits);
    /* The budget is used up: hits are not seen for a while; then, for how long. */
    void (*cut)(void *context, uint32_t watch);
    void (*resumed)(void *context, uint32_t watch, uint64_t ns);
};

/* Hands out everything in the rings, by time, and applies the budget. */
void etch_watches_drain(struct etch_watches *watches, const struct etch_watch_sink *sink);

/* How often the debug register fired, by the kernel's own count: more than the hits that came through means loss. */
uint64_t etch_watches_count(const struct etch_watches *watches, uint32_t watch);

/* Descriptors to poll for input: one per ring. Returns how many were filled in. */
size_t etch_watches_poll(const struct etch_watches *watches, struct pollfd *fds, size_t max);

/* What a hit costs the program, measured here on ourselves; 0 where it could not be. */
uint64_t etch_watches_hit_ns(const struct etch_watches *watches);

/* Hits by the kernel on the program's behalf (read(2) into a watched buffer) are seen as well. */
bool etch_watches_see_kernel(const struct etch_watches *watches);

#endif
