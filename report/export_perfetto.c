/* SPDX-License-Identifier: MIT */
/* A Perfetto trace: a track for each thread, a slice for each call. A slice stands at the earliest time at which the
 * call can have begun and ended; its bounds are annotations. Names are interned. */
#include "report/export.h"
#include "report/measure.h"
#include "report/protobuf.h"
#include "report/quantity.h"

/* Fields of Trace, TracePacket, TrackEvent, TrackDescriptor in Perfetto's protos. */
enum {
    TRACE_PACKET = 1,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_ANNOTATION = 4,
    BEGIN = 1,
    END = 2,
    CLEARED = 1,
    NEEDS_STATE = 2,
};

struct perfetto {
    struct etch_measure *measure;
    FILE *out;
    struct etch_text trace, packet, event, part;
    ETCH_ARRAY(bool) named; /* functions whose name was written */
    size_t thread;          /* whose track was begun, plus one */
    uint64_t last;          /* nanoseconds: times of a track increase */
    bool failed;
};

static void flush(struct perfetto *p)
{
    etch_pb_number(&p->packet, PACKET_SEQUENCE, 1);
    etch_pb_message(&p->trace, TRACE_PACKET, &p->packet);
    p->failed |= p->trace.failed;
    fwrite(p->trace.v, 1, p->trace.n, p->out);
    p->trace.n = 0;
}

static void begin_track(struct perfetto *p)
{
    const struct etch_profile_thread *t = &p->measure->profile->threads.v[p->measure->thread];
    struct etch_text thread = {0};

    p->thread = p->measure->thread + 1;
    p->last = 0;
    etch_pb_number(&thread, 1, t->pid);
    etch_pb_number(&thread, 2, t->tid);
    etch_pb_string(&thread, 5, t->name[0] ? t->name : "thread");
    etch_pb_number(&p->part, 1, p->thread);
    etch_pb_message(&p->part, 4, &thread);
    etch_pb_message(&p->packet, PACKET_TRACK, &p->part);
    etch_pb_number(&p->packet, PACKET_FLAGS, p->thread == 1 ? CLEARED : NEEDS_STATE);
    flush(p);
    free(thread.v);
}

/* Ticks since the run began as nanoseconds; without times the instructions of the thread. */
static uint64_t moment(struct perfetto *p, uint64_t ticks)
{
    const struct etch_measure *m = p->measure;
    uint64_t at = m->instructions;

    if (m->profile->unit == ETCH_UNIT_TICKS)
        at = ticks > m->begin ? (uint64_t)etch_quantity_ns(m->profile, (double)(ticks - m->begin)) : 0;
    p->last = at > p->last ? at : p->last;
    return p->last;
}

static void annotate(struct perfetto *p, const char *name, uint64_t value)
{
    etch_pb_string(&p->part, 10, name);
    etch_pb_number(&p->part, 3, value);
    etch_pb_message(&p->event, EVENT_ANNOTATION, &p->part);
}

static bool is_named(struct perfetto *p, uint32_t function)
{
    while (p->named.n <= function)
        if (!etch_array_push(&p->named, false)) {
            p->failed = true;
            return false;
        }
    if (p->named.v[function])
        return true;
    p->named.v[function] = true;
    return false;
}

/* The name comes with its first event. */
static void name_function(struct perfetto *p, uint32_t function)
{
    struct etch_text entry = {0};

    if (!is_named(p, function)) {
        etch_pb_number(&entry, 1, (uint64_t)function + 1);
        etch_pb_string(&entry, 2, p->measure->profile->functions.v[function].name);
        etch_pb_message(&p->part, 2, &entry);
        etch_pb_message(&p->packet, PACKET_INTERNED, &p->part);
    }
    free(entry.v);
}

static void on_enter(void *context, const struct etch_measure_frame *frame)
{
    struct perfetto *p = context;

    if (p->thread != p->measure->thread + 1)
        begin_track(p);
    etch_pb_number(&p->packet, PACKET_TIMESTAMP, moment(p, frame->entered.lo));
    name_function(p, frame->function);
    etch_pb_number(&p->event, EVENT_TYPE, BEGIN);
    etch_pb_number(&p->event, EVENT_TRACK, p->thread);
    etch_pb_number(&p->event, EVENT_NAME_IID, (uint64_t)frame->function + 1);
    etch_pb_message(&p->packet, PACKET_TRACK_EVENT, &p->event);
    etch_pb_number(&p->packet, PACKET_FLAGS, NEEDS_STATE);
    flush(p);
}

static void on_leave(void *context, const struct etch_measure_frame *frame, const struct etch_profile_call *call)
{
    struct perfetto *p = context;
    bool ticks = p->measure->profile->unit == ETCH_UNIT_TICKS;

    (void)frame;
    etch_pb_number(&p->packet, PACKET_TIMESTAMP, moment(p, p->measure->last.lo));
    etch_pb_number(&p->event, EVENT_TYPE, END);
    etch_pb_number(&p->event, EVENT_TRACK, p->thread);
    if (call) {
        double scale = ticks && p->measure->profile->ns_per_tick > 0 ? p->measure->profile->ns_per_tick : 1;

        annotate(p, ticks ? "at least ns" : "instructions", (uint64_t)((double)call->cost.lo * scale));
        if (ticks)
            annotate(p, "at most ns", (uint64_t)((double)call->cost.hi * scale));
        if (call->wait)
            annotate(p, "waiting ns", (uint64_t)etch_quantity_ns(p->measure->profile, (double)call->wait));
    }
    etch_pb_message(&p->packet, PACKET_TRACK_EVENT, &p->event);
    etch_pb_number(&p->packet, PACKET_FLAGS, NEEDS_STATE);
    flush(p);
}

int etch_export_perfetto(struct etch_recording *recording, struct etch_symbols *symbols,
                         const struct etch_profile_options *options, FILE *out, struct etch_error *err)
{
    struct perfetto p = {.out = out};
    struct etch_measure m = {
        .recording = recording, .symbols = symbols, .on_enter = on_enter, .on_leave = on_leave, .watcher = &p};
    int status;

    p.measure = &m;
    m.profile = etch_profile_new();
    if (!m.profile)
        return etch_error_no_memory(err);
    status = etch_measure_run(&m, options, err);
    etch_profile_free(m.profile);
    etch_array_free(&p.named);
    free(p.trace.v);
    free(p.packet.v);
    free(p.event.v);
    free(p.part.v);
    return p.failed ? etch_error_no_memory(err) : status;
}
