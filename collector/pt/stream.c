/* SPDX-License-Identifier: MIT */
/* The streams of an Intel PT recording; see stream.h. */
#include "collector/pt/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#define TAKE_LEAST (128u << 10) /* smaller pieces wait, to keep records large */
#define TAKE_MOST (2u << 20)    /* bytes of a CPU in a turn, about */
#define TURNS 10u               /* but not for more than so many turns */
#define BYTES_A_SWITCH 32u      /* a thread that comes and goes leaves more trace than that */

static uint64_t tsc_of(const struct etch_pt_streams *p, uint64_t time)
{
    return etch_clock_offered_tsc(&p->clock, time);
}

static uint64_t time_now(const struct etch_pt_streams *p)
{
    return etch_clock_offered_ns(&p->clock, __rdtsc());
}

int etch_pt_streams_make(struct etch_pt_streams *p, struct etch_pt_events *events, struct etch_error *err)
{
    p->n = events->cpus.n;
    p->list = calloc(p->n, sizeof(*p->list));
    if (!p->list)
        return etch_error_set(err, "cannot record with Intel PT: out of memory");
    for (size_t i = 0; i < p->n; i++) {
        struct etch_pt_stream *c = &p->list[i];

        c->all = p;
        c->ring = &events->cpus.v[i];
        c->id = (uint32_t)i;
        if (p->full)
            continue;
        c->max_changes = events->request.ring / BYTES_A_SWITCH;
        c->changes = calloc(c->max_changes, sizeof(*c->changes));
        if (!c->changes)
            return etch_error_set(err, "cannot record with Intel PT: out of memory");
    }
    return 0;
}

void etch_pt_streams_begin(struct etch_pt_streams *p)
{
    p->turn_time = time_now(p);
}

void etch_pt_streams_release(struct etch_pt_streams *p)
{
    if (!p->list)
        return;
    for (size_t i = 0; i < p->n; i++) {
        free(p->list[i].changes);
        free(p->list[i].held);
        etch_array_free(&p->list[i].pieces);
        etch_array_free(&p->list[i].doubts);
    }
    free(p->list);
}

/* ---- Losses ---- */

static void report(struct etch_pt_stream *c, Etch__LossCause cause, uint64_t offset, uint64_t bytes, uint64_t events,
                   uint64_t time, const char *words)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[128];

    loss.cause = cause;
    loss.stream = c->id;
    loss.offset = offset;
    loss.bytes = bytes;
    loss.events = events;
    loss.tsc = time ? tsc_of(c->all, time) : 0;
    loss.cpu = c->ring->cpu;
    snprintf(detail, sizeof(detail), "CPU %u: %s", loss.cpu, words);
    loss.detail = detail;
    c->all->sink->lost(c->all->sink->context, &loss);
}

static void report_faults(struct etch_pt_stream *c, const struct etch_pt_piece *piece)
{
    static const struct {
        uint64_t flag;
        Etch__LossCause cause;
        const char *words;
    } faults[] = {
        {PERF_AUX_FLAG_TRUNCATED, ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED, "its ring was full, etch too slow to empty it"},
        {PERF_AUX_FLAG_PARTIAL, ETCH__LOSS_CAUSE__LOSS_AUX_PARTIAL, "the trace has gaps, as where a hypervisor ran"},
        {PERF_AUX_FLAG_COLLISION, ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION, "something else used its tracer"},
    };

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (piece->flags & faults[i].flag)
            report(c, faults[i].cause, piece->end + c->shift, 0, 1, piece->time, faults[i].words);
}

/* ---- The records beside the trace ---- */

static void flush_switches(struct etch_pt_streams *p)
{
    Etch__Switches switches = ETCH__SWITCHES__INIT;
    Etch__Switch *list[ETCH_PT_SWITCHES];

    for (size_t i = 0; i < p->n_switches; i++)
        list[i] = &p->switches[i];
    switches.n_switches = p->n_switches;
    switches.switches = list;
    if (p->n_switches)
        p->sink->write(p->sink->context, ETCH__RECORD__BODY_SWITCHES, &switches);
    p->n_switches = 0;
}

static void write_change(struct etch_pt_streams *p, uint32_t cpu, const struct etch_pt_change *change)
{
    Etch__Switch *s = &p->switches[p->n_switches];

    etch__switch__init(s);
    s->cpu = cpu;
    s->perf_ns = change->time;
    s->tsc = tsc_of(p, change->time);
    s->in = change->in;
    s->preempted = change->preempted;
    s->pid = change->pid;
    s->tid = change->tid;
    if (++p->n_switches == ETCH_PT_SWITCHES)
        flush_switches(p);
}

static void take_switch(struct etch_pt_stream *c, const struct etch_side *side)
{
    struct etch_pt_change change = {side->time, side->pid, side->tid, side->in, side->preempted};

    if (c->changes)
        c->changes[c->n_changes++ % c->max_changes] = change;
    else
        write_change(c->all, c->ring->cpu, &change);
}

#define CUT PERF_AUX_FLAG_TRUNCATED
#define FAULTS (CUT | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)

static void take_piece(struct etch_pt_stream *c, const struct etch_side *side)
{
    struct etch_pt_piece piece = {side->offset, side->offset + side->size, side->time, side->flags & FAULTS};

    c->off |= (piece.flags & CUT) != 0;
    if (piece.begin <= piece.end && !etch_array_push(&c->pieces, piece))
        c->lost_time = side->time;
}

static void take_lost(struct etch_pt_stream *c, const struct etch_side *side)
{
    c->lost_time = side->time;
    c->off = true; /* the word of a full ring may be among them */
    report(c, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, 0, side->lost, side->time,
           "records of who ran came faster than they were read");
}

static void take_record(void *context, const uint8_t *record, size_t size)
{
    struct etch_pt_stream *c = context;
    struct etch_side side;

    if (!etch_side_read(&side, record, size))
        return;
    switch (side.kind) {
    case ETCH_SIDE_SWITCHED:
    case ETCH_SIDE_STARTED:
        take_switch(c, &side);
        break;
    case ETCH_SIDE_AUX:
        take_piece(c, &side);
        break;
    case ETCH_SIDE_LOST:
        take_lost(c, &side);
        break;
    case ETCH_SIDE_OTHER:
        break;
    default:
        etch_process_map_take(c->all->processes, &side, tsc_of(c->all, side.time));
        break;
    }
}

/* ---- The trace ---- */

static void take_bytes(void *context, uint64_t offset, const uint8_t *bytes, size_t size)
{
    struct etch_pt_stream *c = context;

    c->all->sink->bytes(c->all->sink->context, c->id, offset + c->shift, bytes, size, c->hurry);
}

/* Takes the bytes up to `end`, or passes them over. Was the ring full to its last page until now? Then the kernel may
 * have switched the event off for want of room, which it does without a word, and a later piece that begins in that
 * page begins after a pause. The head is read after the room is given back, so it is at least as far as it was before.
 */
static void free_up_to(struct etch_pt_stream *c, struct etch_aux_ring *aux, uint64_t end, etch_aux_visitor *visit)
{
    uint64_t tail = aux->page->aux_tail, full = tail + aux->size - (uint64_t)sysconf(_SC_PAGESIZE), head;

    if (end <= tail)
        return;
    etch_aux_ring_take(aux, (size_t)(end - tail), visit, c);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* the tail above is out before the head is read */
    head = __atomic_load_n(&aux->page->aux_head, __ATOMIC_ACQUIRE);
    if (head <= full)
        return;
    c->off = true;
    if (!etch_array_push(&c->doubts, ((struct etch_pt_span){full, head})))
        report(c, ETCH__LOSS_CAUSE__LOSS_NO_MEMORY, full + c->shift, head - full, 1, 0,
               "a pause of the trace may be unmarked here");
}

static void take_up_to(struct etch_pt_stream *c, struct etch_aux_ring *aux, uint64_t end)
{
    free_up_to(c, aux, end, take_bytes);
}

/* Bytes of which no record came through. */
static void pass_over(struct etch_pt_stream *c, struct etch_aux_ring *aux, uint64_t end)
{
    uint64_t tail = aux->page->aux_tail;

    report(c, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, tail + c->shift, end - tail, 1, c->lost_time,
           "bytes of the trace without a record of them");
    free_up_to(c, aux, end, NULL);
}

/* True if a piece that begins here may come after such a pause. Pieces come in order, so pauses before this piece are
 * forgotten. */
static bool is_doubtful(struct etch_pt_stream *c, uint64_t at)
{
    size_t kept = 0;
    bool doubtful = false;

    for (size_t i = 0; i < c->doubts.n; i++) {
        doubtful |= at > c->doubts.v[i].begin && at <= c->doubts.v[i].end;
        if (c->doubts.v[i].end >= at)
            c->doubts.v[kept++] = c->doubts.v[i];
    }
    c->doubts.n = kept;
    return doubtful;
}

/* Reports the faults at the end of the piece. The kernel repeats its record while a ring stays full: that is one cut.
 */
static void end_piece(struct etch_pt_stream *c, const struct etch_pt_piece *piece)
{
    bool again = piece->flags == CUT && c->cut_at == piece->end;

    if (!piece->flags || again)
        return;
    report_faults(c, piece);
    if (piece->flags & CUT) {
        c->shift++;
        c->cut_at = piece->end;
    }
}

/* Takes the pieces that are there, up to about `limit` bytes, in as few strokes as they allow. A record comes before
 * its bytes do: the last piece may have to wait. */
static void take_pieces(struct etch_pt_stream *c, struct etch_aux_ring *aux, size_t limit)
{
    uint64_t head = aux->page->aux_tail + etch_aux_ring_waiting(aux), end = aux->page->aux_tail;
    size_t done = 0;

    for (; done < c->pieces.n && end - aux->page->aux_tail < limit; done++) {
        const struct etch_pt_piece *piece = &c->pieces.v[done];

        if (piece->end > head)
            break;
        if (piece->begin > end) {
            take_up_to(c, aux, end);
            pass_over(c, aux, piece->begin);
        } else if (is_doubtful(c, piece->begin)) {
            take_up_to(c, aux, end);
            end_piece(c, &(struct etch_pt_piece){.end = end, .time = piece->time, .flags = CUT});
        }
        end = piece->end > end ? piece->end : end;
        if (piece->flags) {
            take_up_to(c, aux, end);
            end_piece(c, piece);
        }
    }
    take_up_to(c, aux, end);
    c->pieces.n -= done;
    memmove(c->pieces.v, c->pieces.v + done, c->pieces.n * sizeof(c->pieces.v[0]));
}

/* One CPU's turn. */
static void take_turn(struct etch_pt_streams *p, struct etch_pt_stream *c, bool last)
{
    struct etch_aux_ring *aux = &c->ring->aux;
    size_t waiting;

    etch_perf_ring_drain(&c->ring->side, take_record, c);
    if (!p->full) {
        for (size_t i = 0; i < c->pieces.n; i++)
            report_faults(c, &c->pieces.v[i]);
        c->pieces.n = 0;
        return;
    }
    waiting = etch_aux_ring_waiting(aux);
    c->hurry = waiting > aux->size / 2 + aux->size / 8; /* beyond what the kernel wakes us for */
    if (last || waiting >= TAKE_LEAST || waiting > aux->size / 4 || p->turns % TURNS == 0)
        take_pieces(c, aux, last ? SIZE_MAX : TAKE_MOST);
    waiting = etch_aux_ring_waiting(aux);
    if (last && waiting)
        pass_over(c, aux, aux->page->aux_tail + waiting);
}

bool etch_pt_streams_drain(struct etch_pt_streams *p, bool last)
{
    bool off = false;

    p->last_turn = p->turn_time;
    p->turn_time = time_now(p);
    p->turns++;
    for (size_t i = 0; i < p->n; i++) {
        take_turn(p, &p->list[i], last);
        off |= p->list[i].off;
        p->list[i].off = false;
    }
    flush_switches(p);
    return off;
}

/* Records from before the last turn began have come by now from every CPU. */
void etch_pt_streams_settle(struct etch_pt_streams *p, bool last)
{
    etch_process_map_apply(p->processes, last ? UINT64_MAX : p->last_turn);
}

static void write_changes(struct etch_pt_streams *p, const struct etch_pt_stream *c)
{
    size_t n = c->n_changes < c->max_changes ? c->n_changes : c->max_changes;

    for (size_t i = c->n_changes - n; i < c->n_changes; i++)
        write_change(p, c->ring->cpu, &c->changes[i % c->max_changes]);
}

static void hold_bytes(void *context, uint64_t offset, const uint8_t *bytes, size_t size)
{
    struct etch_pt_stream *c = context;

    (void)offset; /* they come one after the other, from 0 on */
    memcpy(c->held + c->n_held, bytes, size);
    c->n_held += size;
}

static void let_go(struct etch_pt_stream *c)
{
    free(c->held);
    c->held = NULL;
    c->n_held = 0;
}

bool etch_pt_streams_hold(struct etch_pt_streams *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct etch_pt_stream *c = &p->list[i];

        c->held = malloc(c->ring->aux.size);
        if (!c->held) {
            for (size_t k = 0; k < i; k++)
                let_go(&p->list[k]);
            return false;
        }
        c->held_wrapped = etch_aux_ring_snapshot(&c->ring->aux, hold_bytes, c);
    }
    return true;
}

/* Returns whether there were older bytes. */
static bool take_held(struct etch_pt_stream *c)
{
    if (!c->held)
        return etch_aux_ring_snapshot(&c->ring->aux, take_bytes, c);
    if (c->n_held)
        take_bytes(c, 0, c->held, c->n_held);
    let_go(c);
    return c->held_wrapped;
}

void etch_pt_streams_snapshot(struct etch_pt_streams *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct etch_pt_stream *c = &p->list[i];

        write_changes(p, c);
        if (take_held(c))
            report(c, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 0, 0, 0, 0, "older than the snapshot");
    }
    flush_switches(p);
}
