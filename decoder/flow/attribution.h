/* SPDX-License-Identifier: MIT */
/* Assigns the parts of a CPU's trace to the threads that ran on the CPU. Switch records give slots of time. Threads
 * change only while no user code runs, so the trace between entry into user code and exit belongs to one thread. This
 * region is assigned to a thread if the region's bounds of time leave no other choice. */
#ifndef ETCH_DECODER_FLOW_ATTRIBUTION_H
#define ETCH_DECODER_FLOW_ATTRIBUTION_H

#include "decoder/flow/pt_flow.h"

/* A thread on a CPU from begin to end; never of the idle task. */
struct etch_cpu_slot {
    uint32_t cpu, pid, tid;
    uint64_t begin, end; /* 0 and UINT64_MAX: the thread was running when the record began or ended */
    bool unknown;        /* records were lost: any thread may have run, beside the threads of the other slots */
};

struct etch_slots {
    ETCH_ARRAY(struct etch_cpu_slot) v; /* by CPU, then time */
};

/* From the recording's switches. A CPU without switches gets one slot for all time: of the only thread, if the
 * recording has just one, else of the only process with thread 0, the unknown thread. False where memory is short. */
bool etch_slots_build(struct etch_slots *slots, const struct etch_recording *recording);

/* The slots of one CPU. */
const struct etch_cpu_slot *etch_slots_of(const struct etch_slots *slots, uint32_t cpu, size_t *n);

/* An interval of a thread on a CPU, perhaps with pauses. */
struct etch_tenure {
    uint32_t cpu, pid, tid;
    uint64_t begin, end;
};

struct etch_tenures {
    ETCH_ARRAY(struct etch_tenure) v; /* by process, thread, then time */
};

/* Puts each thread's slots in a row, joining those on the same CPU. */
bool etch_tenures_build(struct etch_tenures *tenures, const struct etch_slots *slots);

/* Finds the parts of `input` that ran, or may have run, in the tenure. */
bool etch_regions_find(const struct etch_pt_input *input, const struct etch_cpu_slot *slots, size_t n_slots,
                       const struct etch_tenure *tenure, struct etch_pt_region **regions, size_t *n, size_t *capacity);

/* The bounds of time of everything in `input`. */
struct etch_interval etch_pt_input_time(const struct etch_pt_input *input);

#endif
