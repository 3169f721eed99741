/* SPDX-License-Identifier: MIT */
/* Hardware watchpoints through perf: one event for each watch and CPU. Later threads inherit the event. All events of a
 * CPU share one ring. The program does not stop at a hit: the kernel writes the sample. The events end with their
 * descriptors, so that no breakpoint is left behind if etch dies. */
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

/* Hits by the program's own code, in [start, end), have no stack: the address of the instruction is enough. */
void etch_watches_set_own(struct etch_watches *watches, uint64_t start, uint64_t end);

/* Arms a watch in a thread and all threads that it will make. `watch` is the caller's number, below 64. Returns 0, 1 if
 * the thread has ended, or -1 with `err` set. After -1 nothing of this call is left armed. */
int etch_watches_arm(struct etch_watches *watches, uint32_t watch, pid_t tid, uint64_t address, uint32_t size,
                     bool reads, struct etch_error *err);

/* Arms a one-shot stop before the instruction at `address`, in the thread and all threads that it will make. The thread
 * gets SIGTRAP with si_code TRAP_PERF, and the tracer swallows this signal. */
int etch_watches_arm_site(struct etch_watches *watches, uint32_t watch, pid_t tid, uint64_t address,
                          struct etch_error *err);
void etch_watches_disarm_site(struct etch_watches *watches, uint32_t watch);
void etch_watches_disarm_all(struct etch_watches *watches);

struct etch_watch_sink {
    void *context;
    void (*hit)(void *context, uint32_t watch, const struct etch_hit *hit);
    void (*lost)(void *context, uint32_t watch, uint64_t hits);
    /* cut: the budget is used up, and hits are not seen for a while. resumed: hits are seen again after `ns`. */
    void (*cut)(void *context, uint32_t watch);
    void (*resumed)(void *context, uint32_t watch, uint64_t ns);
};

/* Hands out all records of the rings in the order of time, and applies the budget. */
void etch_watches_drain(struct etch_watches *watches, const struct etch_watch_sink *sink);

/* The kernel's count of the debug register's hits. A count above the number of delivered hits means loss. */
uint64_t etch_watches_count(const struct etch_watches *watches, uint32_t watch);

/* Descriptors to poll for input: one per ring. Returns how many were filled in. */
size_t etch_watches_poll(const struct etch_watches *watches, struct pollfd *fds, size_t max);

/* The cost of a hit for the program, measured on etch itself; 0: not measured. */
uint64_t etch_watches_hit_ns(const struct etch_watches *watches);

/* Hits by the kernel on the program's behalf (read(2) into a watched buffer) are seen as well. */
bool etch_watches_see_kernel(const struct etch_watches *watches);

#endif
