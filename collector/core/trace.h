/* SPDX-License-Identifier: MIT */
/* The trace that etch record --for-cores wrote beside a core. */
#ifndef ETCH_COLLECTOR_CORE_TRACE_H
#define ETCH_COLLECTOR_CORE_TRACE_H

#include "collector/session/recorder.h"

struct core_trace {
    struct etch_bundle_reader *reader; /* NULL: there is none of this process */
};

/* Opens NAME.pt.etch beside the core NAME.core, if it is of process `pid`. `outer_pid` is the number of the process
 * outside of its container; 0: not known. The trace has outer numbers, and a core has inner ones: the trace of a
 * container's process cannot be joined to its core. */
void core_trace_open(struct core_trace *trace, const char *core, uint32_t outer_pid, uint32_t pid);

/* Copies the control flow, and what decoding it needs, except records that are not `wanted`. Returns whether there was
 * a trace. */
bool core_trace_copy(struct core_trace *trace, struct etch_recorder *to,
                     bool (*wanted)(void *context, const Etch__Record *record), void *context);

void core_trace_release(struct core_trace *trace);

#endif
