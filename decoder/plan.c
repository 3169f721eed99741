/* SPDX-License-Identifier: MIT */
/* See plan.h. */
#include "decoder/plan.h"
#include "decoder/pt_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STRETCH ((size_t)64 << 10) /* at least, where the stream has as much */
#define READ_MORE ((size_t)64 << 10)
#define TAIL ((size_t)4 << 10)          /* of the successor: its PSB, and a timing packet with luck */
#define STRETCH_MAX ((size_t)256 << 20) /* without any PSB: no CPU does that */

struct etch_plan {
    const struct etch_recording *recording;
    struct etch_steps_options options;
    ETCH_ARRAY(const struct etch_stream *) streams; /* by thread */
    size_t stream;                                  /* which of them is next */
    bool begun;                                     /* and whether `at` is in it */
    uint64_t at;
    struct etch_tape_event lead; /* of the next stretch */
    bool at_psb;                 /* a PSB stands at `at` */
};

void etch_stretch_release(struct etch_stretch *stretch)
{
    etch_array_free(&stretch->bytes);
    etch_array_free(&stretch->regions);
}

static int compare_streams(const void *a, const void *b)
{
    const Etch__Stream *x = (*(const struct etch_stream *const *)a)->about;
    const Etch__Stream *y = (*(const struct etch_stream *const *)b)->about;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_wanted(const struct etch_plan *plan, const Etch__Stream *about)
{
    if (about->of_case != ETCH__STREAM__OF_TID)
        return false;
    return plan->options.tid == 0 || plan->options.tid == about->tid;
}

int etch_plan_new(struct etch_plan **plan, struct etch_recording *recording, const struct etch_steps_options *options,
                  struct etch_error *err)
{
    struct etch_plan *p = calloc(1, sizeof(*p));

    if (!p)
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", recording->path);
    p->recording = recording;
    p->options = *options;
    for (size_t i = 0; i < recording->streams.n; i++)
        if (is_wanted(p, recording->streams.v[i].about) && !etch_array_push(&p->streams, &recording->streams.v[i])) {
            etch_plan_free(p);
            return etch_error_set_errno(err, ENOMEM, "cannot decode %s", recording->path);
        }
    if (p->streams.n)
        qsort(p->streams.v, p->streams.n, sizeof(p->streams.v[0]), compare_streams);
    *plan = p;
    return 0;
}

void etch_plan_free(struct etch_plan *plan)
{
    if (!plan)
        return;
    etch_array_free(&plan->streams);
    free(plan);
}

/* Makes the stretch's bytes reach `size`, if the stream has as many before a hole. */
static int read_up_to(const struct etch_stream *stream, uint64_t at, struct etch_stretch *stretch, size_t size,
                      struct etch_error *err)
{
    ssize_t got;

    if (!etch_array_reserve(&stretch->bytes, size))
        return etch_error_set_errno(err, ENOMEM, "cannot read %s", stream->recording->path);
    while (stretch->bytes.n < size) {
        got = etch_stream_read(stream, at + stretch->bytes.n, stretch->bytes.v + stretch->bytes.n,
                               size - stretch->bytes.n);
        if (got < 0)
            return etch_error_set_errno(err, (int)-got, "cannot read %s", stream->recording->path);
        if (got == 0)
            break;
        stretch->bytes.n += (size_t)got;
    }
    return 0;
}

/* Where the bytes at or after `at` begin; the stream's end where there are none. */
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

static struct etch_tape_event lead_loss(Etch__LossCause cause, uint64_t offset, const char *detail)
{
    return (struct etch_tape_event){.kind = ETCH_STEP_LOSS, .cause = cause, .offset = offset, .detail = detail};
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

static void note_unsynchronised(struct etch_plan *plan, const struct etch_stream *stream, uint64_t at)
{
    if (plan->lead.kind == ETCH_STEP_LOSS)
        return; /* a hole comes before, which says it all */
    if (stream->about->snapshot)
        plan->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, at, "older bytes were overwritten");
    else
        plan->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_DECODE, at, "bytes before the first PSB cannot be decoded");
}

/* Moves plan->at to the first PSB at or after it. Returns 1, 0 where the stream has none, -1 with `err` set. */
static int find_psb(struct etch_plan *plan, const struct etch_stream *stream, struct etch_stretch *scratch,
                    struct etch_error *err)
{
    while (plan->at < etch_stream_end(stream)) {
        uint64_t begin = next_piece(stream, plan->at);
        const uint8_t *psb;
        size_t skipped;

        if (begin != plan->at)
            plan->lead = lead_loss(hole_cause(stream, plan->at, begin), plan->at, "bytes of the stream are missing");
        plan->at = begin;
        scratch->bytes.n = 0;
        if (read_up_to(stream, plan->at, scratch, READ_MORE, err) < 0)
            return -1;
        if (scratch->bytes.n == 0)
            return 0;
        psb = etch_pt_psb_find(scratch->bytes.v, scratch->bytes.v + scratch->bytes.n);
        skipped = psb ? (size_t)(psb - scratch->bytes.v) : scratch->bytes.n;
        if (!all_zero(scratch->bytes.v, skipped))
            note_unsynchronised(plan, stream, plan->at);
        if (psb) {
            plan->at += skipped;
            return 1;
        }
        /* A PSB may lie over the edge of what was read. */
        plan->at += skipped < READ_MORE ? skipped : skipped - (ETCH_PT_PSB_SIZE - 1);
    }
    return 0;
}

/* Reads from the PSB at plan->at on, until another stands at least STRETCH behind it. */
static int read_stretch(struct etch_plan *plan, const struct etch_stream *stream, struct etch_stretch *stretch,
                        struct etch_error *err)
{
    size_t searched = STRETCH, want = STRETCH + TAIL;
    const uint8_t *psb = NULL;

    stretch->bytes.n = 0;
    for (;;) {
        if (read_up_to(stream, plan->at, stretch, want, err) < 0)
            return -1;
        if (stretch->bytes.n > searched)
            psb = etch_pt_psb_find(stretch->bytes.v + searched, stretch->bytes.v + stretch->bytes.n);
        if (psb || stretch->bytes.n < want || want > STRETCH_MAX)
            break;
        searched = stretch->bytes.n - (ETCH_PT_PSB_SIZE - 1);
        want += READ_MORE;
    }
    stretch->input.own = psb ? (size_t)(psb - stretch->bytes.v) : stretch->bytes.n;
    if (psb && read_up_to(stream, plan->at, stretch, stretch->input.own + TAIL, err) < 0)
        return -1;
    if (psb && stretch->bytes.n > stretch->input.own + TAIL)
        stretch->bytes.n = stretch->input.own + TAIL;
    stretch->input.last = !psb;
    return 0;
}

static void fill(struct etch_plan *plan, const struct etch_stream *stream, struct etch_stretch *stretch)
{
    const Etch__Stream *about = stream->about;

    stretch->stream = stream;
    stretch->pid = about->pid;
    stretch->tid = about->tid;
    stretch->cpu = UINT32_MAX;
    stretch->lead = plan->lead;
    stretch->regions.n = 0;
    stretch->input.bytes = stretch->bytes.v;
    stretch->input.size = stretch->bytes.n;
    stretch->input.offset = plan->at;
    stretch->input.pid = about->pid;
    stretch->input.config = about->pt;
    stretch->input.regions = NULL;
    stretch->input.n_regions = 0;
    plan->lead = (struct etch_tape_event){0};
}

/* The next stretch of the current stream. Returns 1, 0 at its end, -1 with `err` set. */
static int next_of_stream(struct etch_plan *plan, const struct etch_stream *stream, struct etch_stretch *stretch,
                          struct etch_error *err)
{
    int found = plan->at_psb ? 1 : find_psb(plan, stream, stretch, err);

    if (found < 0)
        return -1;
    if (found == 0) {
        if (plan->lead.kind != ETCH_STEP_LOSS)
            return 0;
        stretch->bytes.n = stretch->input.own = 0; /* nothing but what was lost */
        fill(plan, stream, stretch);
        plan->at = etch_stream_end(stream);
        return 1;
    }
    if (read_stretch(plan, stream, stretch, err) < 0)
        return -1;
    fill(plan, stream, stretch);
    plan->at += stretch->input.own;
    plan->at_psb = !stretch->input.last;
    return 1;
}

int etch_plan_next(struct etch_plan *plan, struct etch_stretch *stretch, struct etch_error *err)
{
    for (; plan->stream < plan->streams.n; plan->stream++) {
        const struct etch_stream *stream = plan->streams.v[plan->stream];
        int found;

        if (!plan->begun) {
            plan->begun = true;
            plan->at = stream->pieces.n ? stream->pieces.v[0].offset : 0;
            plan->at_psb = false;
            plan->lead = (struct etch_tape_event){0};
            if (plan->at > 0)
                plan->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 0, "older bytes were overwritten");
        }
        found = next_of_stream(plan, stream, stretch, err);
        if (found != 0)
            return found;
        plan->begun = false;
    }
    return 0;
}
