/* SPDX-License-Identifier: MIT */
/* The perf events of an Intel PT recording. A task's event with a ring cannot be inherited unless it is bound to a CPU,
 * so there is one for each CPU, and one ring pair for each CPU that the events of all threads share: AUX bytes, and
 * records about them. A dummy event beside each brings those records even while the PT event is switched off by a full
 * ring. All of it belongs to etch: it outlives the program, and nothing of it outlives etch. */
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
    bool full;          /* emptied while it fills, rather than overwritten */
    bool smaller;       /* a smaller ring will do where so much memory may not be locked */
    const char *filter; /* as the kernel wants it; NULL: all code */
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

/* Adds a thread and all threads and processes that it makes from now on; the first one also maps the rings. `joining`:
 * it may have inherited the events already. Nothing is recorded until etch_pt_events_enable(). Returns 0, 1 where the
 * thread has ended, or -1 with `err` set. */
int etch_pt_events_add(struct etch_pt_events *events, pid_t tid, bool joining, struct etch_error *err);

/* The same for every process of a control group, by an open descriptor of its folder. */
int etch_pt_events_add_cgroup(struct etch_pt_events *events, int cgroup, struct etch_error *err);

void etch_pt_events_enable(const struct etch_pt_events *events);
void etch_pt_events_disable(const struct etch_pt_events *events);

/* Those of one CPU again, after its full ring switched them off. */
void etch_pt_events_resume(const struct etch_pt_events *events);

void etch_pt_events_release(struct etch_pt_events *events);

/* Whether Intel PT can be used here at all: tries an event with rings on ourselves. Returns 0, or -1 with `err` set. */
int etch_pt_events_try(const struct etch_pt_caps *caps, struct etch_error *err);

#endif
