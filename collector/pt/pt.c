/* SPDX-License-Identifier: MIT */
/* Intel PT through perf_event; see pt.h. The kernel writes the trace of each CPU into a ring of its own. By default
 * that ring is overwritten, and read once the program has failed or ended; with `full` it is emptied all the while. The
 * records beside the trace (who ran when, what was mapped) are taken all the while in either case. */
#include "collector/pt.h"

#include "calibrate/perfclock.h"
#include "collector/pt/filter.h"
#include "collector/pt/process_map.h"
#include "collector/pt_events.h"
#include "collector/session/host.h"
#include "collector/session/plan_file.h"
#include "collector/session/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#define FULL_RING_BYTES (8u << 20) /* an emptied one must bridge the pauses of etch */
#define TAKE_LEAST (128u << 10)    /* smaller pieces wait, so that records are not tiny */
#define TAKE_MOST (2u << 20)       /* of one CPU in one turn */
#define TURNS 10u                  /* but not for more than so many turns */
#define SWITCHES_AT_ONCE 512u
#define BYTES_A_SWITCH 32u /* a thread that comes and goes leaves more trace than that */

struct change {
    uint64_t time;
    uint32_t pid, tid;
    bool in, preempted;
};

/* Bytes that one or more AUX records speak of, [begin, end) as the kernel counts. What none speaks of cannot be
 * trusted: the ring may have been full in between. */
struct piece {
    uint64_t begin, end, time;
    uint64_t flags; /* what went wrong at its end */
};

struct span {
    uint64_t begin, end;
};

struct cpu {
    struct etch_pt *pt;
    size_t index; /* of events.cpus, and the stream's number */
    ETCH_ARRAY(struct piece) pieces;
    ETCH_ARRAY(struct span) doubts; /* where the ring may have been full, of which the kernel says nothing */
    uint64_t shift;         /* from the kernel's offsets to the stream's: each cut is shown as a hole of one byte */
    uint64_t cut_at;        /* the last one, as the kernel counts */
    uint64_t lost_time;     /* when records were lost, the last time */
    bool hurry;             /* the ring fills faster than it is emptied with care */
    bool off;               /* the events may have been switched off by a full ring */
    struct change *changes; /* the newest, in a ring, where the trace is one */
    size_t n_changes, max_changes;
};

struct etch_pt {
    struct etch_flow_sink sink;
    const struct etch_record_options *options;
    struct etch_pt_caps caps;
    struct etch_pt_setting setting;
    struct etch_pt_events events;
    struct etch_process_map *spaces;
    struct cpu *cpus;
    char filter[8192];
    size_t n_filters;
    struct etch_clock_offered clock;
    uint64_t turn_time; /* when the last turn began, by perf's clock */
    unsigned turns;
    Etch__Switch switches[SWITCHES_AT_ONCE];
    size_t n_switches;
    bool running, stopped;
    bool borrowed; /* the rings are somebody else's */
};

static int out_of_memory(struct etch_error *err)
{
    return etch_error_set(err, "cannot record with Intel PT: out of memory");
}

/* ---- perf's clock ---- */

static uint64_t tsc_of(const struct etch_pt *p, uint64_t time)
{
    return etch_clock_offered_tsc(&p->clock, time);
}

static uint64_t time_now(const struct etch_pt *p)
{
    return etch_clock_offered_ns(&p->clock, __rdtsc());
}

/* The trace has TSC, the records beside it have perf's clock: without the kernel's own conversion nothing could be told
 * of who ran what. */
static int read_clock(struct etch_pt *p, struct etch_error *err)
{
    etch_clock_offered_read(&p->clock);
    if (p->clock.offered && p->clock.mult && p->clock.shift <= 32)
        return 0;
    etch_error_set(err, "cannot record with Intel PT: the kernel does not say how its clock relates to the TSC");
    return etch_error_advise(err, "it does where it trusts the TSC: dmesg | grep -i tsc, clocksource tsc");
}

/* ---- Filters ---- */

struct plan_ranges {
    struct etch_filter_ranges *ranges;
    const struct etch_object *object;
    const char *plan;
};

static int take_plan(void *context, const Etch__Plan *plan, struct etch_error *err)
{
    struct plan_ranges *to = context;
    uint8_t id[64];
    size_t n = etch_object_build_id(to->object, id);

    if (plan->build_id.len && (plan->build_id.len != n || memcmp(plan->build_id.data, id, n) != 0)) {
        etch_error_set(err, "the plan %s was made for another build of the program", to->plan);
        return etch_error_advise(err, "etch slice, on this build");
    }
    for (size_t i = 0; i < plan->n_track; i++) {
        struct etch_filter_range range = {plan->track[i]->start, plan->track[i]->end};

        if (range.start < range.end && !etch_array_push(&to->ranges->list, range))
            return out_of_memory(err);
    }
    if (to->ranges->list.n)
        return 0;
    return etch_error_set(err, "the plan %s has no ranges of code to trace", to->plan);
}

static int gather_ranges(struct etch_pt *p, struct etch_filter_ranges *ranges, const struct etch_object *object,
                         struct etch_error *err)
{
    const struct etch_record_options *o = p->options;

    for (size_t i = 0; i < o->n_filters; i++) {
        struct plan_ranges plan = {ranges, object, o->plan};
        struct etch_filter_range range;

        if (strcmp(o->filters[i], "plan") == 0) {
            if (!o->plan)
                return etch_error_set(err, "--filter plan needs --plan FILE");
            if (etch_plan_file_visit(o->plan, take_plan, &plan, err) < 0)
                return -1;
            continue;
        }
        if (etch_range_parse(&range, o->filters[i], object, err) < 0)
            return -1;
        if (!etch_array_push(&ranges->list, range))
            return out_of_memory(err);
    }
    return 0;
}

static void note_ranges(struct etch_pt *p, size_t asked, size_t left, uint64_t more)
{
    char text[200];

    if (!p->caps.filters)
        snprintf(text, sizeof(text), "this CPU has no address filters: all code is recorded");
    else if (more)
        snprintf(text, sizeof(text),
                 "%zu ranges were joined to the %zu filters that this CPU has: %" PRIu64 " bytes of code more", asked,
                 left, more);
    else
        return;
    p->sink.note(p->sink.context, text);
}

/* The program's file is known only now that it runs. */
static int make_filter(struct etch_pt *p, pid_t pid, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_filter_ranges ranges = {0};
    char link[64], path[4096];
    int status = 0;

    if (!p->options->n_filters)
        return 0;
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    etch_process_exe(pid, path, sizeof(path));
    if (etch_object_open(&object, link, err) < 0 || gather_ranges(p, &ranges, object, err) < 0)
        status = -1;
    if (status == 0) {
        size_t asked = ranges.list.n;
        uint64_t more = etch_ranges_join(&ranges, p->caps.filters);

        note_ranges(p, asked, ranges.list.n, more);
        p->n_filters = p->caps.filters ? ranges.list.n : 0;
        if (p->n_filters)
            status = etch_pt_filter_write(p->filter, sizeof(p->filter), &ranges, object, path, err);
    }
    etch_array_free(&ranges.list);
    etch_object_free(object);
    p->events.request.filter = p->n_filters ? p->filter : NULL;
    return status;
}

/* ---- Opening ---- */

static int no_device(struct etch_error *err)
{
    etch_error_set(err, "cannot record with Intel PT: this machine offers none");
    return etch_error_advise(err, "etch doctor says why; --source vpt and --source none need no Intel PT");
}

static size_t power_of_two(uint64_t at_least)
{
    size_t size = 4096;

    while (size < at_least && size < (size_t)1 << 40)
        size *= 2;
    return size;
}

int etch_pt_open(struct etch_pt **pt, const struct etch_record_options *o, const struct etch_flow_sink *sink,
                 struct etch_error *err)
{
    struct etch_pt *p = *pt = calloc(1, sizeof(*p));
    uint64_t ring = o->full ? o->full_ring : o->snapshot;

    if (!p)
        return out_of_memory(err);
    p->sink = *sink;
    p->options = o;
    etch_pt_caps_read(&p->caps, "");
    if (!p->caps.present)
        return no_device(err);
    p->events.request = (struct etch_pt_request){
        .caps = &p->caps,
        .setting = &p->setting,
        .ring = ring      ? power_of_two(ring)
                : o->full ? FULL_RING_BYTES
                          : ETCH_PT_RING,
        .full = o->full,
        .smaller = !ring,
    };
    p->spaces = etch_process_map_new(sink);
    if (!p->spaces)
        return out_of_memory(err);
    return etch_pt_setting_choose(&p->setting, &p->caps, o->pt_words, p->events.request.ring, err);
}

/* Threads that appear meanwhile are made by threads that have the events, and inherit them. */
static int add_threads(struct etch_pt *p, pid_t pid, struct etch_error *err)
{
    struct etch_tids done = {0}, now;
    bool joining = false, more = true, any = false;
    int status = 0;

    while (more && status >= 0) {
        more = false;
        if (etch_process_threads(pid, &now) < 0)
            break;
        for (size_t i = 0; i < now.list.n && status >= 0; i++) {
            bool known = false;

            for (size_t k = 0; k < done.list.n; k++)
                known |= done.list.v[k] == now.list.v[i];
            if (known)
                continue;
            status = etch_pt_events_add(&p->events, now.list.v[i], joining, err);
            any |= status == 0;
            more = etch_array_push(&done.list, now.list.v[i]);
        }
        joining = true;
        etch_array_free(&now.list);
    }
    etch_array_free(&done.list);
    if (status >= 0 && !any)
        return etch_error_set(err, "cannot record process %d: it is gone", (int)pid);
    return status < 0 ? -1 : 0;
}

static int make_cpus(struct etch_pt *p, struct etch_error *err)
{
    p->cpus = calloc(p->events.cpus.n, sizeof(*p->cpus));
    if (!p->cpus)
        return out_of_memory(err);
    for (size_t i = 0; i < p->events.cpus.n; i++) {
        struct cpu *c = &p->cpus[i];

        c->pt = p;
        c->index = i;
        if (p->options->full)
            continue;
        c->max_changes = p->events.request.ring / BYTES_A_SWITCH;
        c->changes = calloc(c->max_changes, sizeof(*c->changes));
        if (!c->changes)
            return out_of_memory(err);
    }
    return 0;
}

static void write_streams(struct etch_pt *p)
{
    char vendor[13] = "";

    for (size_t i = 0; i < p->events.cpus.n; i++) {
        Etch__Stream stream = ETCH__STREAM__INIT;
        Etch__PtConfig config = ETCH__PT_CONFIG__INIT;

        etch_host_cpu(vendor, &config.family, &config.model, &config.stepping);
        config.vendor = vendor;
        config.mtc_freq = p->setting.mtc ? p->setting.mtc_period : 0;
        config.nom_freq = p->caps.max_nonturbo_ratio;
        config.cpuid_15_eax = p->caps.art_denominator;
        config.cpuid_15_ebx = p->caps.art_numerator;
        config.no_ret_compression = p->setting.noretcomp;
        config.filters = (uint32_t)p->n_filters;
        stream.id = (uint32_t)i;
        stream.source = ETCH__SOURCE__SOURCE_PT;
        stream.of_case = ETCH__STREAM__OF_CPU;
        stream.cpu = p->events.cpus.v[i].cpu;
        stream.pt = &config;
        stream.snapshot = !p->options->full;
        p->sink.write(p->sink.context, ETCH__RECORD__BODY_STREAM, &stream);
    }
}

static void note_ring(struct etch_pt *p, size_t wanted)
{
    char text[200];

    if (p->events.request.ring >= wanted)
        return;
    snprintf(text, sizeof(text),
             "rings of %zu KiB rather than %zu on each CPU: more may not be locked (kernel.perf_event_mlock_kb)",
             p->events.request.ring >> 10, wanted >> 10);
    p->sink.note(p->sink.context, text);
}

/* Once the first events have their rings. */
static int get_going(struct etch_pt *p, size_t wanted, struct etch_error *err)
{
    if (p->cpus)
        return 0;
    if (read_clock(p, err) < 0 || make_cpus(p, err) < 0)
        return -1;
    note_ring(p, wanted);
    write_streams(p);
    p->sink.summary->locked_bytes = p->events.locked;
    return 0;
}

int etch_pt_add_process(struct etch_pt *p, pid_t pid, struct etch_error *err)
{
    size_t wanted = p->events.request.ring;

    if (!p->cpus && make_filter(p, pid, err) < 0)
        return -1;
    if (add_threads(p, pid, err) < 0 || get_going(p, wanted, err) < 0)
        return -1;
    etch_process_map_seed(p->spaces, pid);
    return 0;
}

int etch_pt_add_cgroup(struct etch_pt *p, int cgroup, struct etch_error *err)
{
    size_t wanted = p->events.request.ring;

    return etch_pt_events_add_cgroup(&p->events, cgroup, err) < 0 ? -1 : get_going(p, wanted, err);
}

int etch_pt_open_rings(struct etch_pt **pt, const struct etch_record_options *o, const struct etch_flow_sink *sink,
                       const struct etch_pt_cpu *cpus, size_t n, struct etch_error *err)
{
    struct etch_pt *p = *pt = calloc(1, sizeof(*p));

    if (!p)
        return out_of_memory(err);
    p->sink = *sink;
    p->options = o;
    p->clock = (struct etch_clock_offered){.offered = true, .mult = 1};
    p->events.request.ring = n ? cpus[0].aux.size : 0;
    p->borrowed = true;
    p->spaces = etch_process_map_new(sink);
    for (size_t i = 0; i < n; i++)
        if (!etch_array_push(&p->events.cpus, cpus[i]))
            return out_of_memory(err);
    if (!p->spaces || make_cpus(p, err) < 0)
        return out_of_memory(err);
    write_streams(p);
    p->running = true;
    return 0;
}

void etch_pt_seed(struct etch_pt *p, pid_t pid)
{
    etch_process_map_seed(p->spaces, pid);
}

void etch_pt_begin(struct etch_pt *p)
{
    p->turn_time = time_now(p);
    p->running = true;
    etch_pt_events_enable(&p->events);
}

/* ---- Losses ---- */

static void report(struct cpu *c, Etch__LossCause cause, uint64_t offset, uint64_t bytes, uint64_t events,
                   uint64_t time, const char *words)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[128];

    loss.cause = cause;
    loss.stream = (uint32_t)c->index;
    loss.offset = offset;
    loss.bytes = bytes;
    loss.events = events;
    loss.tsc = time ? tsc_of(c->pt, time) : 0;
    loss.cpu = c->pt->events.cpus.v[c->index].cpu;
    snprintf(detail, sizeof(detail), "CPU %u: %s", loss.cpu, words);
    loss.detail = detail;
    c->pt->sink.lost(c->pt->sink.context, &loss);
}

static void report_faults(struct cpu *c, const struct piece *piece)
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

static void flush_switches(struct etch_pt *p)
{
    Etch__Switches switches = ETCH__SWITCHES__INIT;
    Etch__Switch *list[SWITCHES_AT_ONCE];

    for (size_t i = 0; i < p->n_switches; i++)
        list[i] = &p->switches[i];
    switches.n_switches = p->n_switches;
    switches.switches = list;
    if (p->n_switches)
        p->sink.write(p->sink.context, ETCH__RECORD__BODY_SWITCHES, &switches);
    p->n_switches = 0;
}

static void write_change(struct etch_pt *p, uint32_t cpu, const struct change *change)
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
    if (++p->n_switches == SWITCHES_AT_ONCE)
        flush_switches(p);
}

static void take_switch(struct cpu *c, const struct etch_side *side)
{
    struct change change = {side->time, side->pid, side->tid, side->in, side->preempted};

    if (c->changes)
        c->changes[c->n_changes++ % c->max_changes] = change;
    else
        write_change(c->pt, c->pt->events.cpus.v[c->index].cpu, &change);
}

#define CUT PERF_AUX_FLAG_TRUNCATED
#define FAULTS (CUT | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)

static void take_piece(struct cpu *c, const struct etch_side *side)
{
    struct piece piece = {side->offset, side->offset + side->size, side->time, side->flags & FAULTS};

    c->off |= (piece.flags & CUT) != 0;
    if (piece.begin <= piece.end && !etch_array_push(&c->pieces, piece))
        c->lost_time = side->time;
}

static void take_lost(struct cpu *c, const struct etch_side *side)
{
    c->lost_time = side->time;
    c->off = true; /* the word of a full ring may be among them */
    report(c, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, 0, side->lost, side->time,
           "records of who ran came faster than they were read");
}

static void take_record(void *context, const uint8_t *record, size_t size)
{
    struct cpu *c = context;
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
        etch_process_map_take(c->pt->spaces, &side, tsc_of(c->pt, side.time));
        break;
    }
}

/* ---- The trace ---- */

static void take_bytes(void *context, uint64_t offset, const uint8_t *bytes, size_t size)
{
    struct cpu *c = context;

    c->pt->sink.bytes(c->pt->sink.context, (uint32_t)c->index, offset + c->shift, bytes, size, c->hurry);
}

/* Takes the bytes up to `end`, or passes them over. Was the ring full to its last page until now? Then the kernel may
 * have switched the event off for want of room, which it does without a word, and a later piece that begins in that
 * page begins after a pause. The head is looked at after the room is given back: what it had reached before, it has
 * now. */
static void free_up_to(struct cpu *c, struct etch_aux_ring *aux, uint64_t end, etch_aux_visitor *visit)
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
    (void)etch_array_push(&c->doubts, ((struct span){full, head}));
}

static void take_up_to(struct cpu *c, struct etch_aux_ring *aux, uint64_t end)
{
    free_up_to(c, aux, end, take_bytes);
}

/* Bytes of which no record came through. */
static void pass_over(struct cpu *c, struct etch_aux_ring *aux, uint64_t end)
{
    uint64_t tail = aux->page->aux_tail;

    report(c, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, tail + c->shift, end - tail, 1, c->lost_time,
           "bytes of the trace without a record of them");
    free_up_to(c, aux, end, NULL);
}

/* Whether a piece that begins here may come after such a pause. Pieces come in order: what lies behind is settled. */
static bool is_doubtful(struct cpu *c, uint64_t at)
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

/* What the piece says of its end. A ring that stays full is told again and again: one cut. */
static void end_piece(struct cpu *c, const struct piece *piece)
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
static void take_pieces(struct cpu *c, struct etch_aux_ring *aux, size_t limit)
{
    uint64_t head = aux->page->aux_tail + etch_aux_ring_waiting(aux), end = aux->page->aux_tail;
    size_t done = 0;

    for (; done < c->pieces.n && end - aux->page->aux_tail < limit; done++) {
        const struct piece *piece = &c->pieces.v[done];

        if (piece->end > head)
            break;
        if (piece->begin > end) {
            take_up_to(c, aux, end);
            pass_over(c, aux, piece->begin);
        } else if (is_doubtful(c, piece->begin)) {
            take_up_to(c, aux, end);
            end_piece(c, &(struct piece){.end = end, .time = piece->time, .flags = CUT});
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
static void take_turn(struct etch_pt *p, struct cpu *c, bool all)
{
    struct etch_pt_cpu *ring = &p->events.cpus.v[c->index];
    size_t waiting;

    etch_perf_ring_drain(&ring->side, take_record, c);
    if (!p->options->full) {
        for (size_t i = 0; i < c->pieces.n; i++)
            report_faults(c, &c->pieces.v[i]);
        c->pieces.n = 0;
        return;
    }
    waiting = etch_aux_ring_waiting(&ring->aux);
    c->hurry = waiting > ring->aux.size / 2 + ring->aux.size / 8; /* beyond what the kernel wakes us for */
    if (all || waiting >= TAKE_LEAST || waiting > ring->aux.size / 4 || p->turns % TURNS == 0)
        take_pieces(c, &ring->aux, all ? SIZE_MAX : TAKE_MOST);
    waiting = etch_aux_ring_waiting(&ring->aux);
    if (all && waiting)
        pass_over(c, &ring->aux, ring->aux.page->aux_tail + waiting);
}

static void take_turns(struct etch_pt *p, bool all)
{
    uint64_t now = time_now(p);
    bool off = false;

    p->turns++;
    for (size_t i = 0; i < p->events.cpus.n; i++) {
        take_turn(p, &p->cpus[i], all);
        off |= p->cpus[i].off;
        p->cpus[i].off = false;
    }
    flush_switches(p);
    if (off && p->running)
        etch_pt_events_resume(&p->events);
    /* What happened before the last turn began has come by now from every CPU. */
    etch_process_map_apply(p->spaces, all ? UINT64_MAX : p->turn_time);
    p->turn_time = now;
}

static void write_changes(struct etch_pt *p, const struct cpu *c)
{
    size_t n = c->n_changes < c->max_changes ? c->n_changes : c->max_changes;

    for (size_t i = c->n_changes - n; i < c->n_changes; i++)
        write_change(p, p->events.cpus.v[c->index].cpu, &c->changes[i % c->max_changes]);
}

static void take_snapshot(struct etch_pt *p)
{
    for (size_t i = 0; i < p->events.cpus.n; i++) {
        struct cpu *c = &p->cpus[i];

        write_changes(p, c);
        if (etch_aux_ring_snapshot(&p->events.cpus.v[i].aux, take_bytes, c))
            report(c, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 0, 0, 0, 0, "older than the snapshot");
    }
    flush_switches(p);
}

static void halt(struct etch_pt *p)
{
    if (p->running)
        etch_pt_events_disable(&p->events);
    p->running = false;
}

void etch_pt_stop(struct etch_pt *p)
{
    if (!p->cpus || p->stopped)
        return;
    halt(p);
    take_turns(p, true);
    if (!p->options->full)
        take_snapshot(p);
    etch_process_map_conclude(p->spaces);
    p->sink.summary->processes += etch_process_map_processes(p->spaces);
    p->sink.summary->threads += etch_process_map_threads(p->spaces);
    p->stopped = true;
}

size_t etch_pt_poll(const struct etch_pt *p, struct pollfd *fds, size_t max)
{
    size_t n = 0;

    for (; n < p->events.cpus.n && n < max && p->running; n++)
        fds[n] = (struct pollfd){.fd = p->events.cpus.v[n].fd, .events = POLLIN};
    return n;
}

void etch_pt_drain(struct etch_pt *p)
{
    if (!p->cpus || p->stopped)
        return;
    if (p->running)
        take_turns(p, false);
    else
        etch_pt_stop(p); /* frozen: there is nothing to wait for */
}

void etch_pt_close(struct etch_pt *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->cpus && i < p->events.cpus.n; i++) {
        free(p->cpus[i].changes);
        etch_array_free(&p->cpus[i].pieces);
        etch_array_free(&p->cpus[i].doubts);
    }
    free(p->cpus);
    if (p->borrowed)
        p->events.cpus.n = 0;
    etch_pt_events_release(&p->events);
    etch_process_map_free(p->spaces);
    free(p);
}

bool etch_pt_alive(const struct etch_pt *p)
{
    return etch_process_map_alive(p->spaces);
}

bool etch_pt_usable(struct etch_error *err)
{
    struct etch_pt_caps caps;
    size_t ring;

    etch_pt_caps_read(&caps, "");
    if (!caps.present) {
        no_device(err);
        return false;
    }
    return etch_pt_events_try(&caps, &ring, err) == 0;
}

/* ---- Beside the native collector ---- */

static int flow_open(void **state, const struct etch_record_options *options, const struct etch_flow_sink *sink,
                     struct etch_error *err)
{
    struct etch_pt *p = NULL;
    int status = etch_pt_open(&p, options, sink, err);

    *state = p;
    return status;
}

static int flow_start(void *state, pid_t pid, struct etch_error *err)
{
    struct etch_pt *p = state;

    etch_process_map_leave(p->spaces, pid);
    if (etch_pt_add_process(p, pid, err) < 0)
        return -1;
    etch_pt_begin(p);
    return 0;
}

static size_t flow_poll(const void *state, struct pollfd *fds, size_t max)
{
    return etch_pt_poll(state, fds, max);
}

static void flow_drain(void *state)
{
    etch_pt_drain(state);
}

static void flow_freeze(void *state)
{
    struct etch_pt *p = state;

    if (!p->options->full)
        halt(p);
}

static void flow_stop(void *state)
{
    etch_pt_stop(state);
}

static void flow_close(void *state)
{
    etch_pt_close(state);
}

const struct etch_flow_recorder etch_flow_pt = {
    .name = "pt",
    .source = ETCH__SOURCE__SOURCE_PT,
    .tells_mappings = true,
    .open = flow_open,
    .start = flow_start,
    .poll = flow_poll,
    .drain = flow_drain,
    .freeze = flow_freeze,
    .stop = flow_stop,
    .close = flow_close,
};
