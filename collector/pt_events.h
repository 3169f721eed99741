/* SPDX-License-Identifier: MIT */
/* The perf events of an Intel PT recording. A task's event with a ring can be inherited only if the event is bound to a
 * CPU. A task therefore has one event for each CPU. Each CPU has one ring pair, which the events of all threads share:
 * AUX bytes, and records about them. A dummy event beside each PT event delivers the records even while a full ring has
 * switched the PT event off. Events and rings belong to etch: they outlive the program, and end with etch. */
#ifndef ETCH_COLLECTOR_PT_EVENTS_H
#define ETCH_COLLECTOR_PT_EVENTS_H

#include "base/array.h"
#include "base/error.h"
#include "collector/perf_ring.h"
#include "collector/pt_caps.h"

#include <sys/types.h>

struct etch_pt_request {
    const struct etch_pt_caps *caps;
    const struct etch_pt_setting *setting;
    size_t ring;        /* bytes of AUX for each CPU, a power of two */
    bool full;          /* etch empties the ring while the kernel fills it; else the kernel overwrites it */
    bool smaller;       /* takes a smaller ring if so much memory may not be locked */
    const char *filter; /* in the kernel's grammar; NULL: all code */
};

struct etch_pt_cpu {
    uint32_t cpu;
    int fd; /* of the event that the rings were mapped on */
    struct etch_perf_ring side;
    struct etch_aux_ring aux;
};

struct etch_pt_events {
    struct etch_pt_request request;
    ETCH_ARRAY(struct etch_pt_cpu) cpus; /* those that are online */
    ETCH_ARRAY(int) traces, sides;       /* PT events, dummy events */
    bool old_kernel;                     /* no build-ids in MMAP2 */
    size_t locked;                       /* bytes of ring memory, all CPUs */
};

/* Adds a thread, and all threads and processes that the thread makes from now on. The first call also maps the rings.
 * `joining`: the thread may have inherited the events already. Nothing is recorded until etch_pt_events_enable().
 * Returns 0, 1 if the thread has ended, or -1 with `err` set. */
int etch_pt_events_add(struct etch_pt_events *events, pid_t tid, bool joining, struct etch_error *err);

/* The same for every process of a control group, by an open descriptor of its folder. */
int etch_pt_events_add_cgroup(struct etch_pt_events *events, int cgroup, struct etch_error *err);

void etch_pt_events_enable(const struct etch_pt_events *events);
void etch_pt_events_disable(const struct etch_pt_events *events);

/* Enables the PT events again after a full ring switched them off. */
void etch_pt_events_resume(const struct etch_pt_events *events);

/* Switches the trace off until etch_pt_events_resume(). The records beside it go on. */
void etch_pt_events_pause(const struct etch_pt_events *events);

void etch_pt_events_release(struct etch_pt_events *events);

/* Bytes of AUX that each CPU gets unless the user says otherwise. */
#define ETCH_PT_RING (4u << 20)

/* Tests if Intel PT can be used here, by events with rings on etch itself. Returns 0 and the size that the rings may
 * have, up to ETCH_PT_RING, or -1 with `err` set. */
int etch_pt_events_try(const struct etch_pt_caps *caps, size_t *ring, struct etch_error *err);

#endif
