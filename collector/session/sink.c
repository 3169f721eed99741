/* SPDX-License-Identifier: MIT */
/* Losses for a sink; see sink.h. */
#include "collector/sink.h"

void etch_sink_lose(const struct etch_sink *sink, Etch__LossCause cause, uint32_t tid, uint64_t events,
                    const char *detail)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    if (!events)
        return;
    loss.cause = cause;
    loss.tid = tid;
    loss.events = events;
    loss.detail = (char *)(uintptr_t)detail;
    sink->lost(sink->context, &loss);
}
