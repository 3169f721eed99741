/* SPDX-License-Identifier: MIT */
/* Who ran on a CPU when, and which parts of the CPU's trace are whose. Switch records give slots of time; a thread can
 * only change while no user code runs, so the trace between entering user code and leaving it is one thread's. It is
 * given to a thread where its bounds of time leave no other choice. */
#ifndef ETCH_DECODER_FLOW_ATTRIBUTION_H
#define ETCH_DECODER_FLOW_ATTRIBUTION_H

#include "decoder/flow/pt_flow.h"

/* A thread on a CPU from begin to end; never of the idle task. */
struct etch_cpu_slot {
    uint32_t cpu, pid, tid;
    uint64_t begin, end; /* 0 and UINT64_MAX where the record began or ended with it running */
    bool unknown;        /* records were lost: anybody may have run, beside whom the other slots name */
};

struct etch_slots {
    ETCH_ARRAY(struct etch_cpu_slot) v; /* by CPU, then time */
};

/* From the recording's switches. A CPU without any gets one slot for all time: of the only thread, where the recording
 * has but one, else of the only process with thread 0, the unknown one. False where memory is short. */
bool etch_slots_build(struct etch_slots *slots, const struct etch_recording *recording);

/* The slots of one CPU. */
const struct etch_cpu_slot *etch_slots_of(const struct etch_slots *slots, uint32_t cpu, size_t *n);

/* An interval in which one thread runs on one CPU, perhaps with pauses. */
struct etch_tenure {
    uint32_t cpu, pid, tid;
    uint64_t begin, end;
};

struct etch_tenures {
    ETCH_ARRAY(struct etch_tenure) v; /* by process, thread, then time */
};

/* Puts each thread's slots in a row, joining those on the same CPU. */
bool etch_tenures_build(struct etch_tenures *tenures, const struct etch_slots *slots);

/* Finds the parts of `input` that ran in the tenure, and all those that may have. */
bool etch_regions_find(const struct etch_pt_input *input, const struct etch_cpu_slot *slots, size_t n_slots,
                       const struct etch_tenure *tenure, struct etch_pt_region **regions, size_t *n, size_t *capacity);

/* The bounds of time of everything in `input`. */
struct etch_interval etch_pt_input_time(const struct etch_pt_input *input);

#endif
