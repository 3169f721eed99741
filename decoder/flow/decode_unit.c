/* SPDX-License-Identifier: MIT */
/* See decode_unit.h. */
#include "decoder/flow/decode_unit.h"
#include "decoder/flow/pt_packet.h"

#include <errno.h>

#define READ_MORE ((size_t)64 << 10)
#define UNIT_MAX ((size_t)256 << 20) /* without any PSB: no CPU does that */

void etch_decode_unit_release(struct etch_decode_unit *unit)
{
    etch_array_free(&unit->bytes);
    etch_array_free(&unit->regions);
}

int etch_decode_unit_read(const struct etch_stream *stream, uint64_t at, struct etch_decode_unit *unit, size_t size,
                          struct etch_error *err)
{
    ssize_t got;

    if (!etch_array_reserve(&unit->bytes, size))
        return etch_error_set_errno(err, ENOMEM, "cannot read %s", stream->recording->path);
    while (unit->bytes.n < size) {
        got = etch_stream_read(stream, at + unit->bytes.n, unit->bytes.v + unit->bytes.n, size - unit->bytes.n);
        if (got < 0)
            return etch_error_set_errno(err, (int)-got, "cannot read %s", stream->recording->path);
        if (got == 0)
            break;
        unit->bytes.n += (size_t)got;
    }
    return 0;
}

/* The begin of the bytes at or after `at`; the stream's end where there are none. */
static uint64_t next_piece(const struct etch_stream *stream, uint64_t at)
{
    for (size_t i = 0; i < stream->pieces.n; i++) {
        const struct etch_piece *piece = &stream->pieces.v[i];

        if (at < piece->offset)
            return piece->offset;
        if (at - piece->offset < piece->size)
            return at;
    }
    return etch_stream_end(stream);
}

static struct etch_step_buffer_event lead_loss(Etch__LossCause cause, uint64_t offset, const char *detail)
{
    return (struct etch_step_buffer_event){.kind = ETCH_STEP_LOSS, .cause = cause, .offset = offset, .detail = detail};
}

/* Why bytes are missing at `at`, in the recorder's own words if it said so. */
static Etch__LossCause hole_cause(const struct etch_stream *stream, uint64_t from, uint64_t to)
{
    const struct etch_recording *r = stream->recording;

    for (size_t i = 0; i < r->losses.n; i++)
        if (r->losses.v[i]->stream == stream->about->id && r->losses.v[i]->offset >= from &&
            r->losses.v[i]->offset <= to)
            return r->losses.v[i]->cause;
    return ETCH__LOSS_CAUSE__LOSS_UNSPECIFIED;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static void note_unsynchronised(struct etch_stream_cursor *c, uint64_t at)
{
    if (c->lead.kind == ETCH_STEP_LOSS)
        return; /* the hole before is the reason, and is reported */
    if (c->stream->about->snapshot)
        c->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, at, "older bytes were overwritten");
    else
        c->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_DECODE, at, "bytes before the first PSB cannot be decoded");
}

/* Moves to the first PSB at or behind the cursor. Returns 1, 0 where the stream has none, -1 with `err` set. */
static int find_psb(struct etch_stream_cursor *c, struct etch_decode_unit *scratch, struct etch_error *err)
{
    while (c->at < etch_stream_end(c->stream)) {
        uint64_t begin = next_piece(c->stream, c->at);
        const uint8_t *psb;
        size_t skipped;

        c->tail = c->tail && begin == c->at;
        if (begin != c->at)
            c->lead = lead_loss(hole_cause(c->stream, c->at, begin), c->at, "bytes of the stream are missing");
        c->at = begin;
        scratch->bytes.n = 0;
        if (etch_decode_unit_read(c->stream, c->at, scratch, READ_MORE, err) < 0)
            return -1;
        if (scratch->bytes.n == 0)
            return 0;
        psb = etch_pt_psb_find(scratch->bytes.v, scratch->bytes.v + scratch->bytes.n);
        skipped = psb ? (size_t)(psb - scratch->bytes.v) : scratch->bytes.n;
        if (!c->tail && !all_zero(scratch->bytes.v, skipped))
            note_unsynchronised(c, c->at);
        if (psb) {
            c->at += skipped;
            c->tail = false;
            return 1;
        }
        /* A PSB may lie over the edge of what was read. */
        c->at += skipped < READ_MORE ? skipped : skipped - (ETCH_PT_PSB_SIZE - 1);
    }
    return 0;
}

/* Reads from the PSB at the cursor on, until another PSB comes at least ETCH_DECODE_UNIT_SIZE behind it. */
static int read_unit(const struct etch_stream_cursor *c, struct etch_decode_unit *unit, struct etch_error *err)
{
    size_t searched = ETCH_DECODE_UNIT_SIZE, want = ETCH_DECODE_UNIT_SIZE + ETCH_DECODE_UNIT_TAIL;
    const uint8_t *psb = NULL;

    unit->bytes.n = 0;
    for (;;) {
        if (etch_decode_unit_read(c->stream, c->at, unit, want, err) < 0)
            return -1;
        if (unit->bytes.n > searched)
            psb = etch_pt_psb_find(unit->bytes.v + searched, unit->bytes.v + unit->bytes.n);
        if (psb || unit->bytes.n < want || want > UNIT_MAX)
            break;
        searched = unit->bytes.n - (ETCH_PT_PSB_SIZE - 1);
        want += READ_MORE;
    }
    unit->input.own = psb ? (size_t)(psb - unit->bytes.v) : unit->bytes.n;
    if (psb && etch_decode_unit_read(c->stream, c->at, unit, unit->input.own + ETCH_DECODE_UNIT_TAIL, err) < 0)
        return -1;
    if (psb && unit->bytes.n > unit->input.own + ETCH_DECODE_UNIT_TAIL)
        unit->bytes.n = unit->input.own + ETCH_DECODE_UNIT_TAIL;
    unit->input.last = !psb;
    return 0;
}

void etch_decode_unit_fill(const struct etch_stream_cursor *c, struct etch_decode_unit *unit)
{
    const Etch__Stream *about = c->stream->about;

    unit->stream = c->stream;
    unit->pid = about->pid;
    unit->tid = about->of_case == ETCH__STREAM__OF_TID ? about->tid : 0;
    unit->cpu = about->of_case == ETCH__STREAM__OF_CPU ? about->cpu : UINT32_MAX;
    unit->lead = c->lead;
    unit->regions.n = 0;
    unit->input.bytes = unit->bytes.v;
    unit->input.size = unit->bytes.n;
    unit->input.offset = c->at;
    unit->input.until = UINT64_MAX;
    unit->input.death = (struct etch_death){0};
    unit->input.pid = about->pid;
    unit->input.config = about->pt;
    unit->input.regions = NULL;
    unit->input.n_regions = 0;
}

void etch_stream_cursor_set(struct etch_stream_cursor *c, const struct etch_stream *stream)
{
    *c = (struct etch_stream_cursor){.stream = stream, .at = stream->pieces.n ? stream->pieces.v[0].offset : 0};
    if (c->at > 0)
        c->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 0, "older bytes were overwritten");
}

int etch_stream_cursor_next(struct etch_stream_cursor *c, struct etch_decode_unit *unit, struct etch_error *err)
{
    int found = c->at_psb ? 1 : find_psb(c, unit, err);

    if (found < 0)
        return -1;
    if (found == 0) {
        if (c->lead.kind != ETCH_STEP_LOSS)
            return 0;
        unit->bytes.n = unit->input.own = 0; /* nothing but the loss */
        etch_decode_unit_fill(c, unit);
        c->at = etch_stream_end(c->stream);
        c->lead = (struct etch_step_buffer_event){0};
        return 1;
    }
    if (read_unit(c, unit, err) < 0)
        return -1;
    etch_decode_unit_fill(c, unit);
    c->lead = (struct etch_step_buffer_event){0};
    c->at += unit->input.own;
    c->at_psb = !unit->input.last;
    return 1;
}
