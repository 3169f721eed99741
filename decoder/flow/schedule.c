/* SPDX-License-Identifier: MIT */
/* See plan.h. */
#include "decoder/flow/schedule.h"
#include "decoder/flow/attribution.h"
#include "decoder/flow/pt_packet.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STRETCH ((size_t)32 << 10) /* at least, where the stream has as much */
#define READ_MORE ((size_t)64 << 10)
#define TAIL ((size_t)4 << 10)          /* of the successor: its PSB, and a timing packet with luck */
#define STRETCH_MAX ((size_t)256 << 20) /* without any PSB: no CPU does that */

/* A CPU's stretch by its place, so that it need not be looked for again. */
struct place {
    uint64_t at;
    size_t own;
    bool last;
    struct etch_interval time;
    struct etch_step_buffer_event lead;
    struct etch_interval lost; /* when what the lead speaks of happened */
};

struct cpu {
    const struct etch_stream *stream;
    ETCH_ARRAY(struct place) places;
};

/* Going along one stream. */
struct cursor {
    const struct etch_stream *stream;
    uint64_t at;
    bool at_psb;                        /* a PSB stands at `at` */
    bool tail;                          /* it was put into the middle on purpose: what lies before is no loss */
    struct etch_step_buffer_event lead; /* of the next stretch */
};

/* Where the thread that failed did what it did last. */
struct end {
    bool known;
    size_t tenure;
    const struct place *place; /* NULL: nothing of it is there */
};

struct etch_schedule {
    const struct etch_recording *recording;
    const struct etch_code *code;
    ETCH_ARRAY(struct etch_soft_map *) maps; /* of processes with a software recorder */
    struct etch_steps_options options;

    ETCH_ARRAY(const struct etch_stream *) streams; /* of threads, by thread */
    size_t stream;                                  /* which of them is next */
    struct cursor cursor;

    ETCH_ARRAY(struct cpu) cpus;
    struct etch_slots slots;
    struct etch_tenures tenures;
    size_t tenure, cpu, place; /* what is next */
    struct end end;

    size_t end_stream, end_tenure; /* where to stop */
    uint64_t skip;                 /* stretches of the row that lie before its tail */
};

void etch_decode_unit_release(struct etch_decode_unit *stretch)
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

/* Makes the stretch's bytes reach `size`, if the stream has as many before a hole. */
static int read_up_to(const struct etch_stream *stream, uint64_t at, struct etch_decode_unit *stretch, size_t size,
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

static void note_unsynchronised(struct cursor *c, uint64_t at)
{
    if (c->lead.kind == ETCH_STEP_LOSS)
        return; /* a hole comes before, which says it all */
    if (c->stream->about->snapshot)
        c->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, at, "older bytes were overwritten");
    else
        c->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_DECODE, at, "bytes before the first PSB cannot be decoded");
}

/* Moves to the first PSB at or behind the cursor. Returns 1, 0 where the stream has none, -1 with `err` set. */
static int find_psb(struct cursor *c, struct etch_decode_unit *scratch, struct etch_error *err)
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
        if (read_up_to(c->stream, c->at, scratch, READ_MORE, err) < 0)
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

/* Reads from the PSB at the cursor on, until another stands at least STRETCH behind it. */
static int read_stretch(const struct cursor *c, struct etch_decode_unit *stretch, struct etch_error *err)
{
    size_t searched = STRETCH, want = STRETCH + TAIL;
    const uint8_t *psb = NULL;

    stretch->bytes.n = 0;
    for (;;) {
        if (read_up_to(c->stream, c->at, stretch, want, err) < 0)
            return -1;
        if (stretch->bytes.n > searched)
            psb = etch_pt_psb_find(stretch->bytes.v + searched, stretch->bytes.v + stretch->bytes.n);
        if (psb || stretch->bytes.n < want || want > STRETCH_MAX)
            break;
        searched = stretch->bytes.n - (ETCH_PT_PSB_SIZE - 1);
        want += READ_MORE;
    }
    stretch->input.own = psb ? (size_t)(psb - stretch->bytes.v) : stretch->bytes.n;
    if (psb && read_up_to(c->stream, c->at, stretch, stretch->input.own + TAIL, err) < 0)
        return -1;
    if (psb && stretch->bytes.n > stretch->input.own + TAIL)
        stretch->bytes.n = stretch->input.own + TAIL;
    stretch->input.last = !psb;
    return 0;
}

static void fill(const struct cursor *c, struct etch_decode_unit *stretch)
{
    const Etch__Stream *about = c->stream->about;

    stretch->stream = c->stream;
    stretch->pid = about->pid;
    stretch->tid = about->of_case == ETCH__STREAM__OF_TID ? about->tid : 0;
    stretch->cpu = about->of_case == ETCH__STREAM__OF_CPU ? about->cpu : UINT32_MAX;
    stretch->lead = c->lead;
    stretch->regions.n = 0;
    stretch->input.bytes = stretch->bytes.v;
    stretch->input.size = stretch->bytes.n;
    stretch->input.offset = c->at;
    stretch->input.until = UINT64_MAX;
    stretch->input.death = (struct etch_death){0};
    stretch->input.pid = about->pid;
    stretch->input.config = about->pt;
    stretch->input.regions = NULL;
    stretch->input.n_regions = 0;
}

static void cursor_set(struct cursor *c, const struct etch_stream *stream)
{
    *c = (struct cursor){.stream = stream, .at = stream->pieces.n ? stream->pieces.v[0].offset : 0};
    if (c->at > 0)
        c->lead = lead_loss(ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 0, "older bytes were overwritten");
}

/* The next stretch of the stream. Returns 1, 0 at its end, -1 with `err` set. */
static int cursor_next(struct cursor *c, struct etch_decode_unit *stretch, struct etch_error *err)
{
    int found = c->at_psb ? 1 : find_psb(c, stretch, err);

    if (found < 0)
        return -1;
    if (found == 0) {
        if (c->lead.kind != ETCH_STEP_LOSS)
            return 0;
        stretch->bytes.n = stretch->input.own = 0; /* nothing but what was lost */
        fill(c, stretch);
        c->at = etch_stream_end(c->stream);
        c->lead = (struct etch_step_buffer_event){0};
        return 1;
    }
    if (read_stretch(c, stretch, err) < 0)
        return -1;
    fill(c, stretch);
    c->lead = (struct etch_step_buffer_event){0};
    c->at += stretch->input.own;
    c->at_psb = !stretch->input.last;
    return 1;
}

/* ---- Threads' own streams ---- */

static bool is_outside(const struct etch_schedule *plan, struct etch_interval time)
{
    return (plan->options.from || plan->options.to) && (time.hi < plan->options.from || time.lo > plan->options.to);
}

/* When the stream begins at the latest; UINT64_MAX where its first bytes do not tell. */
static uint64_t begin_of(const struct etch_stream *stream)
{
    uint8_t bytes[256];
    uint64_t at = stream->pieces.n ? stream->pieces.v[0].offset : 0;
    ssize_t n = etch_stream_read(stream, at, bytes, sizeof(bytes));
    struct etch_pt_input input = {.bytes = bytes, .size = n > 0 ? (size_t)n : 0, .own = 0};

    return etch_pt_input_time(&input).hi;
}

/* What ran last in a stream ran before the thread's next stream began, and before the thread ended. */
static uint64_t end_of(const struct etch_schedule *plan, size_t stream)
{
    const struct etch_recording *r = plan->recording;
    const Etch__Stream *about = plan->streams.v[stream]->about;

    if (stream + 1 < plan->streams.n) {
        const struct etch_stream *next = plan->streams.v[stream + 1];

        if (next->about->pid == about->pid && next->about->tid == about->tid)
            return begin_of(next);
    }
    for (size_t i = 0; i < r->threads.n; i++)
        if (r->threads.v[i]->pid == about->pid && r->threads.v[i]->tid == about->tid && r->threads.v[i]->end_tsc)
            return r->threads.v[i]->end_tsc;
    return UINT64_MAX;
}

/* ---- A software recorder's streams ---- */

static bool is_soft(const struct etch_stream *stream)
{
    return stream->about->source == ETCH__SOURCE__SOURCE_SOFT;
}

static const struct etch_soft_map *map_of(struct etch_schedule *plan, uint32_t pid)
{
    struct etch_soft_map *map;

    for (size_t i = 0; i < plan->maps.n; i++)
        if (plan->maps.v[i]->pid == pid)
            return plan->maps.v[i];
    map = etch_soft_map_new(plan->code, pid);
    if (map && !etch_array_push(&plan->maps, map)) {
        etch_soft_map_free(map);
        return NULL;
    }
    return map;
}

/* A fault, not a signal from outside. Of SIGILL and SIGFPE an emulator may not know the code. */
static bool is_fault(const Etch__Failure *f)
{
    if (f->signal == SIGILL || f->signal == SIGFPE)
        return f->code >= 0;
    return (f->signal == SIGSEGV || f->signal == SIGBUS) && f->code > 0;
}

static struct etch_death death_of(const struct etch_schedule *plan, uint32_t pid, uint32_t tid)
{
    const Etch__Failure *f = plan->recording->failure;

    if (!f || f->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL || f->pid != pid || f->tid != tid)
        return (struct etch_death){0};
    return (struct etch_death){.known = true, .fault = is_fault(f), .ip = f->ip};
}

/* Where the thread stood when the program failed. */
static void find_frames(const struct etch_recording *r, struct etch_decode_unit *stretch)
{
    const Etch__Failure *f = r->failure;

    stretch->frames = NULL;
    stretch->n_frames = 0;
    stretch->failed = false;
    if (!f || f->pid != stretch->pid)
        return;
    for (size_t i = 0; i < f->n_threads; i++)
        if (f->threads[i]->tid == stretch->tid && f->threads[i]->n_frames) {
            stretch->frames = f->threads[i]->frames;
            stretch->n_frames = f->threads[i]->frames_scanned ? 1 : f->threads[i]->n_frames;
        }
    stretch->failed = f->tid == stretch->tid;
    if (!stretch->frames && stretch->failed && f->ip) {
        stretch->frames = &f->ip;
        stretch->n_frames = 1;
    }
}

/* All of it at once: what a ring held. */
static int read_soft(struct etch_schedule *plan, const struct etch_stream *stream, struct etch_decode_unit *stretch,
                     struct etch_error *err)
{
    struct cursor c = {.stream = stream};

    stretch->bytes.n = 0;
    stretch->input.own = 0;
    stretch->input.last = true;
    for (size_t i = 0; i < stream->pieces.n; i++)
        if (read_up_to(stream, stream->pieces.v[i].offset - stretch->bytes.n, stretch,
                       stretch->bytes.n + stream->pieces.v[i].size, err) < 0)
            return -1;
    fill(&c, stretch);
    find_frames(plan->recording, stretch);
    stretch->input.death = death_of(plan, stretch->pid, stretch->tid);
    stretch->soft = map_of(plan, stretch->pid);
    return stretch->soft ? 1 : etch_error_set_errno(err, ENOMEM, "cannot decode %s", plan->recording->path);
}

static int next_of_threads(struct etch_schedule *plan, struct etch_decode_unit *stretch, struct etch_error *err)
{
    while (plan->stream < plan->end_stream) {
        int found;

        if (is_soft(plan->streams.v[plan->stream]))
            return read_soft(plan, plan->streams.v[plan->stream++], stretch, err);
        stretch->soft = NULL;
        if (!plan->cursor.stream)
            cursor_set(&plan->cursor, plan->streams.v[plan->stream]);
        found = cursor_next(&plan->cursor, stretch, err);
        if (found < 0)
            return -1;
        if (found > 0 && plan->cursor.at >= etch_stream_end(plan->cursor.stream)) {
            stretch->input.until = end_of(plan, plan->stream);
            stretch->input.death = death_of(plan, stretch->pid, stretch->tid);
        }
        if (found == 0) {
            plan->stream++;
            plan->cursor.stream = NULL;
        } else if (!is_outside(plan, etch_pt_input_time(&stretch->input))) {
            return 1;
        }
    }
    return 0;
}

/* ---- CPUs' streams ---- */

static bool is_loss(const struct etch_step_buffer_event *lead)
{
    return lead->kind == ETCH_STEP_LOSS;
}

/* What is missing at the end has a place too, of no bytes. */
static int index_cpu(struct cpu *cpu, struct etch_decode_unit *scratch, struct etch_error *err)
{
    struct cursor c;
    int found;

    cursor_set(&c, cpu->stream);
    while ((found = cursor_next(&c, scratch, err)) > 0) {
        struct place place = {scratch->input.offset, scratch->input.own,
                              scratch->input.last,   etch_pt_input_time(&scratch->input),
                              scratch->lead,         {0, UINT64_MAX}};

        if (cpu->places.n)
            place.lost.lo = cpu->places.v[cpu->places.n - 1].time.lo;
        if (place.own)
            place.lost.hi = place.time.lo;
        else
            place.time = place.lost;
        if ((place.own || is_loss(&place.lead)) && !etch_array_push(&cpu->places, place))
            return etch_error_set_errno(err, ENOMEM, "cannot decode %s", cpu->stream->recording->path);
    }
    return found;
}

/* Whether the tenant was there while what is missing was lost. */
static bool has_lost(const struct place *place, const struct etch_cpu_slot *slots, size_t n,
                     const struct etch_tenure *tenure)
{
    for (size_t i = 0; is_loss(&place->lead) && i < n; i++)
        if (slots[i].pid == tenure->pid && slots[i].tid == tenure->tid && slots[i].begin >= tenure->begin &&
            slots[i].begin <= tenure->end && slots[i].begin <= place->lost.hi && slots[i].end >= place->lost.lo)
            return true;
    return false;
}

/* Reads a stretch whose place is known, and finds the tenant's part. Returns 1 if there is any, or was. */
static int read_place(struct etch_schedule *plan, const struct cpu *cpu, const struct place *place,
                      const struct etch_tenure *tenure, struct etch_decode_unit *stretch, struct etch_error *err)
{
    struct cursor c = {.stream = cpu->stream, .at = place->at, .lead = place->lead};
    const struct etch_cpu_slot *slots;
    size_t n;

    stretch->bytes.n = 0;
    if (read_up_to(cpu->stream, place->at, stretch, place->own + (place->last ? 0 : TAIL), err) < 0)
        return -1;
    stretch->input.own = place->own < stretch->bytes.n ? place->own : stretch->bytes.n;
    stretch->input.last = place->last;
    fill(&c, stretch);
    stretch->pid = stretch->input.pid = tenure->pid;
    stretch->tid = tenure->tid;
    slots = etch_slots_of(&plan->slots, cpu->stream->about->cpu, &n);
    if (!etch_regions_find(&stretch->input, slots, n, tenure, &stretch->regions.v, &stretch->regions.n,
                           &stretch->regions.capacity))
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", plan->recording->path);
    stretch->input.regions = stretch->regions.v;
    stretch->input.n_regions = stretch->regions.n;
    if (stretch->regions.n)
        return 1;
    stretch->bytes.n = stretch->input.size = stretch->input.own = 0; /* nothing but what was lost */
    return has_lost(place, slots, n, tenure);
}

/* From when to when: of what is missing before it, too. */
static struct etch_interval span_of(const struct place *place)
{
    return (struct etch_interval){is_loss(&place->lead) ? place->lost.lo : place->time.lo, place->time.hi};
}

static bool may_be_in(const struct etch_tenure *t, const struct cpu *cpu, const struct place *place)
{
    struct etch_interval time = span_of(place);

    return cpu->stream->about->cpu == t->cpu && time.lo <= t->end && time.hi >= t->begin;
}

static bool may_hold(const struct etch_schedule *plan, const struct etch_tenure *t, const struct cpu *cpu,
                     const struct place *place)
{
    return may_be_in(t, cpu, place) && !is_outside(plan, span_of(place));
}

static bool same_thread(const struct etch_tenure *a, const struct etch_tenure *b)
{
    return a->pid == b->pid && a->tid == b->tid;
}

/* Where the row of tenures that `from` is in ends. */
static size_t row_end(const struct etch_schedule *plan, size_t from)
{
    size_t end = from;

    while (end < plan->tenures.v.n && same_thread(&plan->tenures.v.v[from], &plan->tenures.v.v[end]))
        end++;
    return end;
}

/* Whether anything in this place is the tenant's. Returns 1, 0, or -1 with `err` set. */
static int holds(struct etch_schedule *plan, const struct etch_tenure *t, const struct cpu *cpu,
                 const struct place *place, struct etch_decode_unit *scratch, struct etch_error *err)
{
    if (!may_be_in(t, cpu, place))
        return 0;
    if (read_place(plan, cpu, place, t, scratch, err) < 0)
        return -1;
    return scratch->regions.n > 0;
}

/* Finds where the thread of this tenure did what it did last, from the end on. The switches do not tell: whoever dies
 * may be moved to another CPU in the kernel, and run no more code there. */
static int find_end(struct etch_schedule *plan, size_t tenure, struct etch_error *err)
{
    size_t last = row_end(plan, tenure);
    struct etch_decode_unit scratch = {0};
    int found = 0;

    plan->end = (struct end){.known = true};
    while (found == 0 && last-- > 0 && same_thread(&plan->tenures.v.v[last], &plan->tenures.v.v[tenure]))
        for (size_t c = plan->cpus.n; c-- > 0 && found == 0;) {
            const struct cpu *cpu = &plan->cpus.v[c];

            for (size_t i = cpu->places.n; i-- > 0 && found == 0;) {
                found = holds(plan, &plan->tenures.v.v[last], cpu, &cpu->places.v[i], &scratch, err);
                if (found > 0)
                    plan->end = (struct end){true, last, &cpu->places.v[i]};
            }
        }
    etch_decode_unit_release(&scratch);
    return found < 0 ? -1 : 0;
}

/* What the thread died of is told where its trace ends. */
static int note_death(struct etch_schedule *plan, const struct place *place, struct etch_decode_unit *stretch,
                      struct etch_error *err)
{
    struct etch_death death = death_of(plan, stretch->pid, stretch->tid);

    if (!death.known)
        return 0;
    if (!plan->end.known && find_end(plan, plan->tenure, err) < 0)
        return -1;
    if (plan->end.place == place && plan->end.tenure == plan->tenure)
        stretch->input.death = death;
    return 0;
}

static int next_of_cpus(struct etch_schedule *plan, struct etch_decode_unit *stretch, struct etch_error *err)
{
    for (; plan->tenure < plan->end_tenure; plan->tenure++, plan->cpu = 0) {
        const struct etch_tenure *t = &plan->tenures.v.v[plan->tenure];

        for (; plan->cpu < plan->cpus.n; plan->cpu++, plan->place = 0) {
            const struct cpu *cpu = &plan->cpus.v[plan->cpu];

            while (plan->place < cpu->places.n) {
                const struct place *place = &cpu->places.v[plan->place++];
                int found = 0;

                if (may_hold(plan, t, cpu, place) && (plan->skip == 0 || plan->skip-- == 0))
                    found = read_place(plan, cpu, place, t, stretch, err);
                if (found > 0 && note_death(plan, place, stretch, err) < 0)
                    return -1;
                if (found != 0)
                    return found;
            }
        }
    }
    return 0;
}

int etch_schedule_next(struct etch_schedule *plan, struct etch_decode_unit *stretch, struct etch_error *err)
{
    int found = next_of_threads(plan, stretch, err);

    if (found == 0)
        stretch->soft = NULL;
    return found != 0 ? found : next_of_cpus(plan, stretch, err);
}

/* ---- Rows, and their ends ---- */

size_t etch_schedule_rows(const struct etch_schedule *plan)
{
    size_t rows = plan->streams.n;

    for (size_t i = 0; i < plan->tenures.v.n; i = row_end(plan, i))
        rows++;
    return rows;
}

static bool tail_of_stream(struct etch_schedule *plan, size_t row, uint64_t window)
{
    const struct etch_stream *stream = plan->streams.v[row];
    uint64_t end = etch_stream_end(stream);

    plan->stream = row;
    plan->end_stream = row + 1;
    plan->tenure = plan->end_tenure = 0;
    plan->cursor.stream = NULL;
    if (is_soft(stream))
        return true;
    cursor_set(&plan->cursor, stream);
    if (window << 10 >= end - plan->cursor.at)
        return true;
    plan->cursor.at = end - (window << 10);
    plan->cursor.tail = true;
    return false;
}

static uint64_t stretches_of(const struct etch_schedule *plan, size_t from, size_t to)
{
    uint64_t n = 0;

    for (size_t t = from; t < to; t++)
        for (size_t i = 0; i < plan->cpus.n; i++)
            for (size_t k = 0; k < plan->cpus.v[i].places.n; k++)
                n += may_hold(plan, &plan->tenures.v.v[t], &plan->cpus.v[i], &plan->cpus.v[i].places.v[k]);
    return n;
}

static bool tail_of_tenures(struct etch_schedule *plan, size_t row, uint64_t window)
{
    size_t from = 0;
    uint64_t want = 1 + window / (STRETCH >> 10), have;

    while (row-- > 0)
        from = row_end(plan, from);
    plan->stream = plan->end_stream = 0;
    plan->tenure = from;
    plan->end_tenure = row_end(plan, from);
    plan->cpu = plan->place = 0;
    have = stretches_of(plan, from, plan->end_tenure);
    plan->skip = have > want ? have - want : 0;
    return have <= want;
}

bool etch_schedule_tail(struct etch_schedule *plan, size_t row, uint64_t window)
{
    return row < plan->streams.n ? tail_of_stream(plan, row, window)
                                 : tail_of_tenures(plan, row - plan->streams.n, window);
}

/* ---- The plan ---- */

static bool add_stream(struct etch_schedule *plan, const struct etch_stream *stream)
{
    if (stream->about->of_case == ETCH__STREAM__OF_CPU) {
        struct cpu cpu = {.stream = stream};

        return etch_array_push(&plan->cpus, cpu);
    }
    if (plan->options.tid && plan->options.tid != stream->about->tid)
        return true;
    return etch_array_push(&plan->streams, stream);
}

static bool is_wanted(const struct etch_schedule *plan, const struct etch_tenure *t)
{
    const struct etch_recording *r = plan->recording;

    if (plan->options.tid)
        return t->tid == plan->options.tid;
    for (size_t i = 0; i < r->images.n; i++) /* a stranger that ran on the same CPU has none */
        if (r->images.v[i]->pid == t->pid)
            return true;
    return r->images.n == 0;
}

static int plan_cpus(struct etch_schedule *plan, struct etch_error *err)
{
    struct etch_decode_unit scratch = {0};
    size_t n = 0;
    int status = 0;

    if (plan->cpus.n == 0)
        return 0;
    if (!etch_slots_build(&plan->slots, plan->recording) || !etch_tenures_build(&plan->tenures, &plan->slots))
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", plan->recording->path);
    for (size_t i = 0; i < plan->tenures.v.n; i++)
        if (is_wanted(plan, &plan->tenures.v.v[i]))
            plan->tenures.v.v[n++] = plan->tenures.v.v[i];
    plan->tenures.v.n = n;
    for (size_t i = 0; i < plan->cpus.n && status == 0; i++)
        status = index_cpu(&plan->cpus.v[i], &scratch, err);
    etch_decode_unit_release(&scratch);
    return status;
}

int etch_schedule_new(struct etch_schedule **plan, struct etch_recording *recording, const struct etch_code *code,
                      const struct etch_steps_options *options, struct etch_error *err)
{
    struct etch_schedule *p = calloc(1, sizeof(*p));
    bool whole = p != NULL;

    if (p) {
        p->recording = recording;
        p->code = code;
        p->options = *options;
    }
    for (size_t i = 0; i < recording->streams.n && whole; i++)
        whole = add_stream(p, &recording->streams.v[i]);
    if (!whole) {
        etch_schedule_free(p);
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", recording->path);
    }
    if (p->streams.n)
        qsort(p->streams.v, p->streams.n, sizeof(p->streams.v[0]), compare_streams);
    if (plan_cpus(p, err) < 0) {
        etch_schedule_free(p);
        return -1;
    }
    p->end_stream = p->streams.n;
    p->end_tenure = p->tenures.v.n;
    *plan = p;
    return 0;
}

void etch_schedule_free(struct etch_schedule *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->cpus.n; i++)
        etch_array_free(&plan->cpus.v[i].places);
    etch_array_free(&plan->cpus);
    etch_array_free(&plan->slots.v);
    etch_array_free(&plan->tenures.v);
    etch_array_free(&plan->streams);
    for (size_t i = 0; i < plan->maps.n; i++)
        etch_soft_map_free(plan->maps.v[i]);
    etch_array_free(&plan->maps);
    free(plan);
}
