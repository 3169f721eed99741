/* SPDX-License-Identifier: MIT */
/* A bundle that is being written; see recorder.h. */
#include "collector/session/recorder.h"

#include "collector/privacy.h"
#include "collector/session/records.h"

#include <stdarg.h>
#include <stdio.h>
#include <x86intrin.h>

static bool is_beyond(struct etch_recorder *r, uint64_t bytes, uint64_t events)
{
    if (!r->max_size || etch_bundle_written(r->bundle) + bytes <= r->max_size)
        return false;
    r->bytes_beyond += bytes;
    r->events_beyond += events;
    return true;
}

/* Counts a record of a frequent kind. Returns false if the record is left out. */
static bool has_room(struct etch_recorder *r, Etch__Record__BodyCase kind, const void *message)
{
    bool accesses = kind == ETCH__RECORD__BODY_ACCESSES, syncs = kind == ETCH__RECORD__BODY_SYNCS;
    uint64_t events = accesses ? ((const Etch__Accesses *)message)->n_accesses
                      : syncs  ? ((const Etch__Syncs *)message)->n_syncs
                               : 0;

    if (!accesses && !syncs)
        return true;
    if (!events || is_beyond(r, 0, events))
        return false;
    *(accesses ? &r->sink.summary->accesses : &r->sink.summary->syncs) += events;
    return true;
}

void etch_recorder_write(struct etch_recorder *r, Etch__Record__BodyCase kind, void *message)
{
    Etch__Record record = ETCH__RECORD__INIT;

    etch_watchdog_beat(r->watchdog);
    if (r->broken || !has_room(r, kind, message))
        return;
    record.body_case = kind;
    record.program = message; /* the members of the union are all pointers to messages */
    r->broken = etch_bundle_write(r->bundle, &record, &r->error) < 0;
}

static void sink_write(void *context, Etch__Record__BodyCase kind, void *message)
{
    etch_recorder_write(context, kind, message);
}

static void sink_bytes(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry)
{
    struct etch_recorder *r = context;

    if (r->broken || is_beyond(r, size, 0))
        return;
    etch_bundle_hurry(r->bundle, hurry);
    r->broken = etch_bundle_write_flow(r->bundle, stream, offset, data, size, &r->error) < 0;
    etch_bundle_hurry(r->bundle, false);
    r->sink.summary->flow_bytes += size;
}

static void sink_lost(void *context, const Etch__Loss *loss)
{
    struct etch_recorder *r = context;
    struct etch_record_summary *s = r->sink.summary;

    if (!s->loss[0])
        snprintf(s->loss, sizeof(s->loss), "%s", loss->detail ? loss->detail : "");
    etch_recorder_write(r, ETCH__RECORD__BODY_LOSS, (void *)(uintptr_t)loss);
}

static void sink_note(void *context, const char *text)
{
    etch_recorder_note(context, "%s", text);
}

void etch_recorder_note(struct etch_recorder *r, const char *fmt, ...)
{
    struct etch_record_summary *s = r->sink.summary;
    va_list args;

    if (s->n_notes == sizeof(s->notes) / sizeof(s->notes[0]))
        return;
    va_start(args, fmt);
    vsnprintf(s->notes[s->n_notes++], sizeof(s->notes[0]), fmt, args);
    va_end(args);
}

void etch_recorder_init(struct etch_recorder *r, uint64_t max_size, struct etch_record_summary *summary)
{
    *r = (struct etch_recorder){.sink = {r, sink_write, sink_bytes, sink_lost, sink_note, summary},
                                .max_size = max_size};
}

int etch_recorder_create(struct etch_recorder *r, const char *output, struct etch_privacy *privacy,
                         struct etch_error *err)
{
    if (etch_bundle_create(&r->bundle, output, err) < 0)
        return -1;
    etch_privacy_guard(privacy, r->bundle);
    return 0;
}

void etch_recorder_begin(struct etch_recorder *r)
{
    r->start_unix_ns = etch_unix_ns();
    r->start_tsc = __rdtsc();
    r->start_cpu_ns = etch_cpu_ns();
}

void etch_recorder_write_beyond(struct etch_recorder *r)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[120];

    if (!r->bytes_beyond && !r->events_beyond)
        return;
    snprintf(detail, sizeof(detail), "the bundle reached its bound of %llu MiB (--max-size)",
             (unsigned long long)(r->max_size >> 20));
    loss.cause = ETCH__LOSS_CAUSE__LOSS_LIMIT;
    loss.bytes = r->bytes_beyond;
    loss.events = r->events_beyond;
    loss.detail = detail;
    sink_lost(r, &loss);
}

void etch_recorder_finish(struct etch_recorder *r)
{
    if (!r->broken)
        r->broken = etch_bundle_finish(r->bundle, &r->error) < 0;
}

int etch_recorder_check(const struct etch_recorder *r, struct etch_error *err)
{
    if (r->broken)
        *err = r->error;
    return r->broken ? -1 : 0;
}

static void sum_up(const struct etch_recorder *r)
{
    struct etch_record_summary *s = r->sink.summary;
    uint64_t counts[ETCH_LOSS_CAUSES];

    s->bundle_bytes = etch_bundle_written(r->bundle);
    s->losses = etch_ledger_sum(etch_bundle_ledger(r->bundle), counts);
    etch_losses_text(counts, s->lost, sizeof(s->lost));
    snprintf(s->broken, sizeof(s->broken), "%s", r->broken ? r->error.what : "");
}

void etch_recorder_close(struct etch_recorder *r, bool keep)
{
    sum_up(r);
    if (keep)
        etch_bundle_writer_free(r->bundle);
    else
        etch_bundle_discard(r->bundle);
    r->bundle = NULL;
}
