/* SPDX-License-Identifier: MIT */
/* See schedule.h. */
#include "decoder/flow/schedule.h"
#include "decoder/flow/attribution.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A decode unit of a CPU's stream by its place, so that the cursor need not look for the unit again. */
struct place {
    uint64_t at;
    size_t own;
    bool last;
    struct etch_interval time;
    struct etch_step_buffer_event lead;
    struct etch_interval lost; /* when the loss of the lead happened */
};

struct cpu {
    const struct etch_stream *stream;
    ETCH_ARRAY(struct place) places;
};

/* The place with the last steps of the thread that failed. */
struct end {
    bool known;
    size_t tenure;
    const struct place *place; /* NULL: the recording has no step of the thread */
};

struct etch_schedule {
    const struct etch_recording *recording;
    const struct etch_code *code;
    ETCH_ARRAY(struct etch_soft_map *) maps; /* of processes with a software recorder */
    struct etch_steps_options options;

    ETCH_ARRAY(const struct etch_stream *) streams; /* of threads, by thread */
    size_t stream;                                  /* which of them is next */
    struct etch_stream_cursor cursor;

    ETCH_ARRAY(struct cpu) cpus;
    struct etch_slots slots;
    struct etch_tenures tenures;
    size_t tenure, cpu, place; /* what is next */
    struct end end;

    size_t end_stream, end_tenure; /* where to stop */
    uint64_t skip;                 /* decode units of the row that lie before its tail */
};

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

/* ---- Threads' own streams ---- */

static bool is_outside(const struct etch_schedule *schedule, struct etch_interval time)
{
    return (schedule->options.from || schedule->options.to) &&
           (time.hi < schedule->options.from || time.lo > schedule->options.to);
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

/* The last steps of a stream ran before the thread's next stream began, and before the thread ended. */
static uint64_t end_of(const struct etch_schedule *schedule, size_t stream)
{
    const struct etch_recording *r = schedule->recording;
    const Etch__Stream *about = schedule->streams.v[stream]->about;

    if (stream + 1 < schedule->streams.n) {
        const struct etch_stream *next = schedule->streams.v[stream + 1];

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

static const struct etch_soft_map *map_of(struct etch_schedule *schedule, uint32_t pid)
{
    struct etch_soft_map *map;

    for (size_t i = 0; i < schedule->maps.n; i++)
        if (schedule->maps.v[i]->pid == pid)
            return schedule->maps.v[i];
    map = etch_soft_map_new(schedule->code, pid);
    if (map && !etch_array_push(&schedule->maps, map)) {
        etch_soft_map_free(map);
        return NULL;
    }
    return map;
}

/* A fault, not a signal from outside. An emulator may not know the code of SIGILL and SIGFPE. */
static bool is_fault(const Etch__Failure *f)
{
    if (f->signal == SIGILL || f->signal == SIGFPE)
        return f->code >= 0;
    return (f->signal == SIGSEGV || f->signal == SIGBUS) && f->code > 0;
}

static struct etch_death death_of(const struct etch_schedule *schedule, uint32_t pid, uint32_t tid)
{
    const Etch__Failure *f = schedule->recording->failure;

    if (!f || f->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL || f->pid != pid || f->tid != tid)
        return (struct etch_death){0};
    return (struct etch_death){.known = true, .fault = is_fault(f), .ip = f->ip};
}

/* The thread's frames when the program failed. */
static void find_frames(const struct etch_recording *r, struct etch_decode_unit *unit)
{
    const Etch__Failure *f = r->failure;

    unit->frames = NULL;
    unit->n_frames = 0;
    unit->failed = false;
    if (!f || f->pid != unit->pid)
        return;
    for (size_t i = 0; i < f->n_threads; i++)
        if (f->threads[i]->tid == unit->tid && f->threads[i]->n_frames) {
            unit->frames = f->threads[i]->frames;
            unit->n_frames = f->threads[i]->frames_scanned ? 1 : f->threads[i]->n_frames;
        }
    unit->failed = f->tid == unit->tid;
    if (!unit->frames && unit->failed && f->ip) {
        unit->frames = &f->ip;
        unit->n_frames = 1;
    }
}

/* Reads all that a ring held, at once. */
static int read_soft(struct etch_schedule *schedule, const struct etch_stream *stream, struct etch_decode_unit *unit,
                     struct etch_error *err)
{
    struct etch_stream_cursor c = {.stream = stream};

    unit->bytes.n = 0;
    unit->input.own = 0;
    unit->input.last = true;
    for (size_t i = 0; i < stream->pieces.n; i++)
        if (etch_decode_unit_read(stream, stream->pieces.v[i].offset - unit->bytes.n, unit,
                                  unit->bytes.n + stream->pieces.v[i].size, err) < 0)
            return -1;
    etch_decode_unit_fill(&c, unit);
    find_frames(schedule->recording, unit);
    unit->input.death = death_of(schedule, unit->pid, unit->tid);
    unit->soft = map_of(schedule, unit->pid);
    return unit->soft ? 1 : etch_error_set_errno(err, ENOMEM, "cannot decode %s", schedule->recording->path);
}

static int next_of_threads(struct etch_schedule *schedule, struct etch_decode_unit *unit, struct etch_error *err)
{
    while (schedule->stream < schedule->end_stream) {
        int found;

        if (is_soft(schedule->streams.v[schedule->stream]))
            return read_soft(schedule, schedule->streams.v[schedule->stream++], unit, err);
        unit->soft = NULL;
        if (!schedule->cursor.stream)
            etch_stream_cursor_set(&schedule->cursor, schedule->streams.v[schedule->stream]);
        found = etch_stream_cursor_next(&schedule->cursor, unit, err);
        if (found < 0)
            return -1;
        if (found > 0 && schedule->cursor.at >= etch_stream_end(schedule->cursor.stream)) {
            unit->input.until = end_of(schedule, schedule->stream);
            unit->input.death = death_of(schedule, unit->pid, unit->tid);
        }
        if (found == 0) {
            schedule->stream++;
            schedule->cursor.stream = NULL;
        } else if (!is_outside(schedule, etch_pt_input_time(&unit->input))) {
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

/* Bytes that are missing at the stream's end have a place too, of no bytes. */
static int index_cpu(struct cpu *cpu, struct etch_decode_unit *scratch, struct etch_error *err)
{
    struct etch_stream_cursor c;
    int found;

    etch_stream_cursor_set(&c, cpu->stream);
    while ((found = etch_stream_cursor_next(&c, scratch, err)) > 0) {
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

/* Did the tenant run while the missing bytes were lost? */
static bool has_lost(const struct place *place, const struct etch_cpu_slot *slots, size_t n,
                     const struct etch_tenure *tenure)
{
    for (size_t i = 0; is_loss(&place->lead) && i < n; i++)
        if (slots[i].pid == tenure->pid && slots[i].tid == tenure->tid && slots[i].begin >= tenure->begin &&
            slots[i].begin <= tenure->end && slots[i].begin <= place->lost.hi && slots[i].end >= place->lost.lo)
            return true;
    return false;
}

/* Reads the unit of a place, and finds the tenant's part. Returns 1 if there is such a part, or may have been one
 * among bytes that are lost. */
static int read_place(struct etch_schedule *schedule, const struct cpu *cpu, const struct place *place,
                      const struct etch_tenure *tenure, struct etch_decode_unit *unit, struct etch_error *err)
{
    struct etch_stream_cursor c = {.stream = cpu->stream, .at = place->at, .lead = place->lead};
    const struct etch_cpu_slot *slots;
    size_t n;

    unit->bytes.n = 0;
    if (etch_decode_unit_read(cpu->stream, place->at, unit, place->own + (place->last ? 0 : ETCH_DECODE_UNIT_TAIL),
                              err) < 0)
        return -1;
    unit->input.own = place->own < unit->bytes.n ? place->own : unit->bytes.n;
    unit->input.last = place->last;
    etch_decode_unit_fill(&c, unit);
    unit->pid = unit->input.pid = tenure->pid;
    unit->tid = tenure->tid;
    slots = etch_slots_of(&schedule->slots, cpu->stream->about->cpu, &n);
    if (!etch_regions_find(&unit->input, slots, n, tenure, &unit->regions.v, &unit->regions.n, &unit->regions.capacity))
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", schedule->recording->path);
    unit->input.regions = unit->regions.v;
    unit->input.n_regions = unit->regions.n;
    if (unit->regions.n)
        return 1;
    unit->bytes.n = unit->input.size = unit->input.own = 0; /* nothing but the loss */
    return has_lost(place, slots, n, tenure);
}

/* The time of a place, with that of the loss before it. */
static struct etch_interval span_of(const struct place *place)
{
    return (struct etch_interval){is_loss(&place->lead) ? place->lost.lo : place->time.lo, place->time.hi};
}

static bool may_be_in(const struct etch_tenure *t, const struct cpu *cpu, const struct place *place)
{
    struct etch_interval time = span_of(place);

    return cpu->stream->about->cpu == t->cpu && time.lo <= t->end && time.hi >= t->begin;
}

static bool may_hold(const struct etch_schedule *schedule, const struct etch_tenure *t, const struct cpu *cpu,
                     const struct place *place)
{
    return may_be_in(t, cpu, place) && !is_outside(schedule, span_of(place));
}

static bool same_thread(const struct etch_tenure *a, const struct etch_tenure *b)
{
    return a->pid == b->pid && a->tid == b->tid;
}

/* The end of the row of tenures that `from` is in. */
static size_t row_end(const struct etch_schedule *schedule, size_t from)
{
    size_t end = from;

    while (end < schedule->tenures.v.n && same_thread(&schedule->tenures.v.v[from], &schedule->tenures.v.v[end]))
        end++;
    return end;
}

/* Is any part of this place the tenant's? Returns 1, 0, or -1 with `err` set. */
static int holds(struct etch_schedule *schedule, const struct etch_tenure *t, const struct cpu *cpu,
                 const struct place *place, struct etch_decode_unit *scratch, struct etch_error *err)
{
    if (!may_be_in(t, cpu, place))
        return 0;
    if (read_place(schedule, cpu, place, t, scratch, err) < 0)
        return -1;
    return scratch->regions.n > 0;
}

/* Finds the place of the last steps of this tenure's thread, from the end on. The switches do not tell: the kernel may
 * move a dying thread to another CPU, where it runs no more code. */
static int find_end(struct etch_schedule *schedule, size_t tenure, struct etch_error *err)
{
    size_t last = row_end(schedule, tenure);
    struct etch_decode_unit scratch = {0};
    int found = 0;

    schedule->end = (struct end){.known = true};
    while (found == 0 && last-- > 0 && same_thread(&schedule->tenures.v.v[last], &schedule->tenures.v.v[tenure]))
        for (size_t c = schedule->cpus.n; c-- > 0 && found == 0;) {
            const struct cpu *cpu = &schedule->cpus.v[c];

            for (size_t i = cpu->places.n; i-- > 0 && found == 0;) {
                found = holds(schedule, &schedule->tenures.v.v[last], cpu, &cpu->places.v[i], &scratch, err);
                if (found > 0)
                    schedule->end = (struct end){true, last, &cpu->places.v[i]};
            }
        }
    etch_decode_unit_release(&scratch);
    return found < 0 ? -1 : 0;
}

/* The unit with the end of the thread's trace says what the thread died of. */
static int note_death(struct etch_schedule *schedule, const struct place *place, struct etch_decode_unit *unit,
                      struct etch_error *err)
{
    struct etch_death death = death_of(schedule, unit->pid, unit->tid);

    if (!death.known)
        return 0;
    if (!schedule->end.known && find_end(schedule, schedule->tenure, err) < 0)
        return -1;
    if (schedule->end.place == place && schedule->end.tenure == schedule->tenure)
        unit->input.death = death;
    return 0;
}

static int next_of_cpus(struct etch_schedule *schedule, struct etch_decode_unit *unit, struct etch_error *err)
{
    for (; schedule->tenure < schedule->end_tenure; schedule->tenure++, schedule->cpu = 0) {
        const struct etch_tenure *t = &schedule->tenures.v.v[schedule->tenure];

        for (; schedule->cpu < schedule->cpus.n; schedule->cpu++, schedule->place = 0) {
            const struct cpu *cpu = &schedule->cpus.v[schedule->cpu];

            while (schedule->place < cpu->places.n) {
                const struct place *place = &cpu->places.v[schedule->place++];
                int found = 0;

                if (may_hold(schedule, t, cpu, place) && (schedule->skip == 0 || schedule->skip-- == 0))
                    found = read_place(schedule, cpu, place, t, unit, err);
                if (found > 0 && note_death(schedule, place, unit, err) < 0)
                    return -1;
                if (found != 0)
                    return found;
            }
        }
    }
    return 0;
}

int etch_schedule_next(struct etch_schedule *schedule, struct etch_decode_unit *unit, struct etch_error *err)
{
    int found = next_of_threads(schedule, unit, err);

    if (found == 0)
        unit->soft = NULL;
    return found != 0 ? found : next_of_cpus(schedule, unit, err);
}

/* ---- Rows, and their ends ---- */

size_t etch_schedule_rows(const struct etch_schedule *schedule)
{
    size_t rows = schedule->streams.n;

    for (size_t i = 0; i < schedule->tenures.v.n; i = row_end(schedule, i))
        rows++;
    return rows;
}

static bool tail_of_stream(struct etch_schedule *schedule, size_t row, uint64_t window)
{
    const struct etch_stream *stream = schedule->streams.v[row];
    uint64_t end = etch_stream_end(stream);

    schedule->stream = row;
    schedule->end_stream = row + 1;
    schedule->tenure = schedule->end_tenure = 0;
    schedule->cursor.stream = NULL;
    if (is_soft(stream))
        return true;
    etch_stream_cursor_set(&schedule->cursor, stream);
    if (window << 10 >= end - schedule->cursor.at)
        return true;
    schedule->cursor.at = end - (window << 10);
    schedule->cursor.tail = true;
    return false;
}

static uint64_t units_of(const struct etch_schedule *schedule, size_t from, size_t to)
{
    uint64_t n = 0;

    for (size_t t = from; t < to; t++)
        for (size_t i = 0; i < schedule->cpus.n; i++)
            for (size_t k = 0; k < schedule->cpus.v[i].places.n; k++)
                n += may_hold(schedule, &schedule->tenures.v.v[t], &schedule->cpus.v[i],
                              &schedule->cpus.v[i].places.v[k]);
    return n;
}

static bool tail_of_tenures(struct etch_schedule *schedule, size_t row, uint64_t window)
{
    size_t from = 0;
    uint64_t want = 1 + window / (ETCH_DECODE_UNIT_SIZE >> 10), have;

    while (row-- > 0)
        from = row_end(schedule, from);
    schedule->stream = schedule->end_stream = 0;
    schedule->tenure = from;
    schedule->end_tenure = row_end(schedule, from);
    schedule->cpu = schedule->place = 0;
    have = units_of(schedule, from, schedule->end_tenure);
    schedule->skip = have > want ? have - want : 0;
    return have <= want;
}

bool etch_schedule_tail(struct etch_schedule *schedule, size_t row, uint64_t window)
{
    return row < schedule->streams.n ? tail_of_stream(schedule, row, window)
                                     : tail_of_tenures(schedule, row - schedule->streams.n, window);
}

/* ---- The schedule ---- */

static bool add_stream(struct etch_schedule *schedule, const struct etch_stream *stream)
{
    if (stream->about->of_case == ETCH__STREAM__OF_CPU) {
        struct cpu cpu = {.stream = stream};

        return etch_array_push(&schedule->cpus, cpu);
    }
    if (schedule->options.tid && schedule->options.tid != stream->about->tid)
        return true;
    return etch_array_push(&schedule->streams, stream);
}

static bool is_wanted(const struct etch_schedule *schedule, const struct etch_tenure *t)
{
    const struct etch_recording *r = schedule->recording;

    if (schedule->options.tid)
        return t->tid == schedule->options.tid;
    for (size_t i = 0; i < r->images.n; i++) /* a stranger that ran on the same CPU has none */
        if (r->images.v[i]->pid == t->pid)
            return true;
    return r->images.n == 0;
}

static int schedule_cpus(struct etch_schedule *schedule, struct etch_error *err)
{
    struct etch_decode_unit scratch = {0};
    size_t n = 0;
    int status = 0;

    if (schedule->cpus.n == 0)
        return 0;
    if (!etch_slots_build(&schedule->slots, schedule->recording) ||
        !etch_tenures_build(&schedule->tenures, &schedule->slots))
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", schedule->recording->path);
    for (size_t i = 0; i < schedule->tenures.v.n; i++)
        if (is_wanted(schedule, &schedule->tenures.v.v[i]))
            schedule->tenures.v.v[n++] = schedule->tenures.v.v[i];
    schedule->tenures.v.n = n;
    for (size_t i = 0; i < schedule->cpus.n && status == 0; i++)
        status = index_cpu(&schedule->cpus.v[i], &scratch, err);
    etch_decode_unit_release(&scratch);
    return status;
}

int etch_schedule_new(struct etch_schedule **schedule, struct etch_recording *recording, const struct etch_code *code,
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
    if (schedule_cpus(p, err) < 0) {
        etch_schedule_free(p);
        return -1;
    }
    p->end_stream = p->streams.n;
    p->end_tenure = p->tenures.v.n;
    *schedule = p;
    return 0;
}

void etch_schedule_free(struct etch_schedule *schedule)
{
    if (!schedule)
        return;
    for (size_t i = 0; i < schedule->cpus.n; i++)
        etch_array_free(&schedule->cpus.v[i].places);
    etch_array_free(&schedule->cpus);
    etch_array_free(&schedule->slots.v);
    etch_array_free(&schedule->tenures.v);
    etch_array_free(&schedule->streams);
    for (size_t i = 0; i < schedule->maps.n; i++)
        etch_soft_map_free(schedule->maps.v[i]);
    etch_array_free(&schedule->maps);
    free(schedule);
}
