/* SPDX-License-Identifier: MIT */
/* See trace.h. */
#include "collector/core/trace.h"

#include "collector/standby.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_of(const char *path, uint32_t pid)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error ignored;
    uint32_t found = 0;

    if (etch_bundle_open(&reader, path, &ignored) < 0)
        return false;
    while (!found && etch_bundle_next(reader, &item, &ignored) < ETCH_BUNDLE_END)
        if (item.record && item.record->body_case == ETCH__RECORD__BODY_PROGRAM)
            found = item.record->program->pid;
    etch_bundle_reader_free(reader);
    return found == pid;
}

void core_trace_open(struct core_trace *trace, const char *core, uint32_t outer_pid, uint32_t pid)
{
    struct etch_error ignored;
    size_t length = strlen(core);
    char path[4200];

    trace->reader = NULL;
    if (length < 6 || length > 4096 || strcmp(core + length - 5, ".core") != 0)
        return;
    snprintf(path, sizeof(path), "%.*s%s", (int)length - 5, core, ETCH_STANDBY_TRACE);
    if (access(path, R_OK) < 0 || (outer_pid && outer_pid != pid) || !is_of(path, pid))
        return;
    if (etch_bundle_open(&trace->reader, path, &ignored) < 0)
        trace->reader = NULL;
}

static bool is_flow(Etch__Record__BodyCase kind)
{
    switch (kind) {
    case ETCH__RECORD__BODY_HOST:
    case ETCH__RECORD__BODY_CLOCK:
    case ETCH__RECORD__BODY_STREAM:
    case ETCH__RECORD__BODY_FLOW:
    case ETCH__RECORD__BODY_SWITCHES:
    case ETCH__RECORD__BODY_IMAGE:
    case ETCH__RECORD__BODY_THREAD:
    case ETCH__RECORD__BODY_LOSS:
        return true;
    default:
        return false;
    }
}

/* A damaged or cut trace is a loss of the core's bundle, too. */
bool core_trace_copy(struct core_trace *trace, struct etch_recorder *to,
                     bool (*wanted)(void *context, const Etch__Record *record), void *context)
{
    enum etch_bundle_event event;
    struct etch_bundle_item item;
    struct etch_error ignored;
    uint64_t damaged = 0;

    if (!trace->reader)
        return false;
    while ((event = etch_bundle_next(trace->reader, &item, &ignored)) < ETCH_BUNDLE_END) {
        damaged += event == ETCH_BUNDLE_DAMAGED;
        if (item.record && is_flow(item.record->body_case) && wanted(context, item.record))
            etch_recorder_write(to, item.record->body_case, item.record->program);
    }
    damaged += event != ETCH_BUNDLE_END;
    etch_sink_lose(&to->sink, ETCH__LOSS_CAUSE__LOSS_CUT, 0, damaged, "the trace beside the core is not whole");
    return true;
}

void core_trace_release(struct core_trace *trace)
{
    etch_bundle_reader_free(trace->reader);
    trace->reader = NULL;
}
