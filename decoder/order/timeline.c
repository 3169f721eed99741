/* SPDX-License-Identifier: MIT */
/* Stamps to bounds; see timeline.h. */
#include "decoder/timeline.h"

#include "decoder/order/timeline_tie.h"

#include <stdlib.h>
#include <string.h>

enum etch_stamping etch_timeline_stamping(Etch__SyncOp op)
{
    switch (op) {
    case ETCH__SYNC_OP__SYNC_THREAD_CREATE:
    case ETCH__SYNC_OP__SYNC_THREAD_EXIT:
    case ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_UNLOCK:
    case ETCH__SYNC_OP__SYNC_SPIN_UNLOCK:
    case ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN:
    case ETCH__SYNC_OP__SYNC_COND_SIGNAL:
    case ETCH__SYNC_OP__SYNC_COND_BROADCAST:
    case ETCH__SYNC_OP__SYNC_BARRIER_ENTER:
    case ETCH__SYNC_OP__SYNC_SEM_POST:
    case ETCH__SYNC_OP__SYNC_MUTEX_BLOCKED:
    case ETCH__SYNC_OP__SYNC_MUTEX_DESTROY:
        return ETCH_STAMPED_BEFORE;
    default:
        return ETCH_STAMPED_AFTER;
    }
}

/* ---- Bounds ---- */

static struct etch_bound lower(const struct etch_event_stamp *s)
{
    struct etch_bound bound = {.tsc = s->tsc > s->error ? s->tsc - s->error : 0, .cpu = s->cpu};

    return bound;
}

static struct etch_bound upper(const struct etch_event_stamp *s)
{
    struct etch_bound bound = {.tsc = s->tsc > UINT64_MAX - s->error ? UINT64_MAX : s->tsc + s->error, .cpu = s->cpu};

    return bound;
}

/* Bounds an event by its latency, the longest time between event and stamp. The closer bound counts, if the two bounds
 * can be compared. */
static void use_latency(struct etch_event *e, const struct etch_event_stamp *s)
{
    uint64_t far = (uint64_t)s->latency + s->error;
    struct etch_bound bound = {.cpu = s->cpu};

    if (s->latency == 0)
        return;
    if (s->stamping == ETCH_STAMPED_AFTER) {
        bound.tsc = s->tsc > far ? s->tsc - far : 0;
        if (e->lo.cpu != bound.cpu || bound.tsc > e->lo.tsc)
            e->lo = bound;
    } else if (s->stamping == ETCH_STAMPED_BEFORE) {
        bound.tsc = s->tsc > UINT64_MAX - far ? UINT64_MAX : s->tsc + far;
        if (e->hi.cpu != bound.cpu || bound.tsc < e->hi.tsc)
            e->hi = bound;
    }
}

/* Sets lower bounds, and upper bounds by the event's own stamp: forward, with the last stamp of each thread. */
static void bound_forward(struct etch_event *events, const struct etch_event_stamp *stamps, size_t n,
                          const struct etch_event_stamp **near)
{
    for (size_t i = 0; i < n; i++) {
        const struct etch_event_stamp **last = &near[events[i].thread];

        if (stamps[i].stamping == ETCH_STAMPED_BEFORE)
            events[i].lo = lower(&stamps[i]);
        else if (*last)
            events[i].lo = lower(*last);
        if (stamps[i].stamping == ETCH_STAMPED_AFTER) {
            events[i].hi = upper(&stamps[i]);
            use_latency(&events[i], &stamps[i]);
        }
        if (stamps[i].stamping != ETCH_STAMPED_NOT)
            *last = &stamps[i];
    }
}

/* Sets upper bounds by the next stamp of the thread: backwards. `near` has two entries per thread: the next stamp, and
 * the next stamp with an empty store buffer. */
static void bound_backward(struct etch_event *events, const struct etch_event_stamp *stamps, size_t n,
                           const struct etch_event_stamp **near)
{
    for (size_t i = n; i-- > 0;) {
        const struct etch_event_stamp **next = &near[2 * (size_t)events[i].thread];
        const struct etch_event_stamp *by = next[stamps[i].buffered ? 1 : 0];

        if (stamps[i].stamping != ETCH_STAMPED_AFTER && by)
            events[i].hi = upper(by);
        if (stamps[i].stamping == ETCH_STAMPED_BEFORE)
            use_latency(&events[i], &stamps[i]);
        if (stamps[i].stamping != ETCH_STAMPED_NOT)
            next[0] = &stamps[i];
        if (stamps[i].stamping != ETCH_STAMPED_NOT && stamps[i].drained)
            next[1] = &stamps[i];
    }
}

void etch_timeline_bounds(struct etch_event *events, const struct etch_event_stamp *stamps, size_t n, uint32_t threads)
{
    size_t size = (2 * (size_t)threads + 1) * sizeof(const struct etch_event_stamp *);
    const struct etch_event_stamp **near = calloc(1, size);

    for (size_t i = 0; i < n; i++)
        events[i].lo = events[i].hi = (struct etch_bound){.cpu = ETCH_CPU_NONE};
    if (!near)
        return; /* no bounds: nothing is claimed */
    bound_forward(events, stamps, n, near);
    memset(near, 0, size);
    bound_backward(events, stamps, n, near);
    free(near);
}

struct etch_mark etch_mark_of_step(const struct etch_step *step)
{
    uint32_t cpu = step->cpu == UINT32_MAX ? ETCH_CPU_ANY : step->cpu;

    return (struct etch_mark){
        .tid = step->tid,
        .lo = {.tsc = step->time.lo, .cpu = step->time.lo ? cpu : ETCH_CPU_NONE},
        .hi = {.tsc = step->time.hi, .cpu = step->time.hi != UINT64_MAX ? cpu : ETCH_CPU_NONE},
    };
}

/* ---- Events ---- */

/* A thread has one sequence of events of each kind. The kinds are those of etch_timeline.source. */
enum kind { KIND_ACCESS, KIND_SYNC, KIND_SWITCH, KIND_OTHER, KINDS };

struct thread {
    struct etch_sequence sequences[KINDS];
};

struct building {
    struct etch_timeline *t;
    const struct etch_recording *r;
    const struct etch_timeline_options *options;
    uint32_t *of_access, *of_sync; /* the events of the records; only if there are ties */
    ETCH_ARRAY(struct thread) threads;
};

/* The stamp of a record: perf's, converted, or TSC. The kernel computes its clock from the TSC of the CPU it runs on,
 * by one function for all CPUs, so a converted stamp is in the time of that CPU. With another clock source, all
 * converted stamps are in one time. */
static struct etch_event_stamp stamp_of(const struct etch_timeline *t, uint64_t tsc, uint32_t cpu, uint64_t perf_ns,
                                        enum etch_stamping stamping)
{
    struct etch_event_stamp stamp = {.tsc = tsc, .cpu = cpu, .stamping = (uint8_t)stamping};

    if (perf_ns && etch_timeline_from_perf(&t->clocks, perf_ns, &stamp.tsc, &stamp.error))
        stamp.cpu = t->perf_is_tsc ? cpu : t->clocks.reference;
    else if (tsc == 0 || perf_ns) /* the recorder's own conversion has no known error */
        stamp.stamping = ETCH_STAMPED_NOT;
    return stamp;
}

/* In the lab one thread runs at a time: no other thread does anything between an event and its stamp. All stamps are of
 * one clock, and differ by more than this. */
#define LAB_LATENCY 1u

/* Adds an event to the newest sequence. */
static bool add(struct etch_timeline *t, struct etch_event event, struct etch_event_stamp stamp, uint64_t source)
{
    event.thread = (uint32_t)t->tids.n - 1;
    return etch_array_push(&t->events, event) && etch_array_push(&t->stamps, stamp) &&
           etch_array_push(&t->source, source);
}

static bool add_access(struct building *b, size_t index)
{
    const Etch__Access *a = &b->r->accesses.v[index];
    struct etch_event e = {.kind = ETCH_EVENT_ACCESS, .object = a->watch ? a->watch : a->address};
    struct etch_event_stamp stamp = stamp_of(b->t, a->tsc, a->cpu, a->perf_ns, ETCH_STAMPED_AFTER);
    uint64_t latency = b->r->clocks.n ? b->r->clocks.v[0]->trap_latency_hi : 0;
    bool known = a->known_case == ETCH__ACCESS__KNOWN_VALUE;

    if (a->direction_unknown)
        e.access = ETCH_ACCESS_READ | ETCH_ACCESS_WRITE;
    else if (a->write)
        e.access =
            (uint8_t)(ETCH_ACCESS_WRITE | (known ? ETCH_ACCESS_WRITTEN_KNOWN : 0) | (a->read ? ETCH_ACCESS_READ : 0));
    else
        e.access = (uint8_t)(ETCH_ACCESS_READ | (known ? ETCH_ACCESS_SEEN_KNOWN : 0));
    e.written = e.seen = known ? a->value : 0;
    if (b->options->trust_latency && latency < UINT32_MAX)
        stamp.latency = (uint32_t)latency;
    if (a->since && a->since < a->tsc && a->tsc - a->since < UINT32_MAX && !a->perf_ns)
        stamp.latency = (uint32_t)(a->tsc - a->since);
    if (b->r->source == ETCH__SOURCE__SOURCE_LAB)
        stamp.latency = LAB_LATENCY;
    stamp.drained = true; /* vpt fences, and the kernel writes a debug register before it takes the time */
    return add(b->t, e, stamp, (uint64_t)index << 2 | KIND_ACCESS);
}

/* A successful acquire is a locked instruction, before its stamp. */
static bool drains(const Etch__Sync *s)
{
    switch (s->op) {
    case ETCH__SYNC_OP__SYNC_MUTEX_LOCK:
    case ETCH__SYNC_OP__SYNC_SPIN_LOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK:
    case ETCH__SYNC_OP__SYNC_SEM_WAIT:
        return s->result == 0;
    default:
        return s->op == ETCH__SYNC_OP__SYNC_COND_WAIT_END;
    }
}

/* The time from the stamp on one side of the call to the stamp on the other side. */
static uint32_t span_of_call(const Etch__Sync *s, uint8_t stamping)
{
    uint64_t span = stamping == ETCH_STAMPED_AFTER ? s->tsc - s->across : s->across - s->tsc;

    /* A call that waited for long needs no such bound. A difference that wraps is nonsense. */
    return s->across == 0 || stamping == ETCH_STAMPED_NOT || span >= UINT32_MAX ? 0 : (uint32_t)span;
}

static bool add_sync(struct building *b, size_t index)
{
    const Etch__Sync *s = &b->r->syncs.v[index];
    struct etch_event e = {.kind = ETCH_EVENT_SYNC, .op = (uint8_t)s->op, .result = s->result, .other = s->other};
    struct etch_event_stamp stamp = stamp_of(b->t, s->tsc, s->cpu, 0, etch_timeline_stamping(s->op));
    bool thread = s->op == ETCH__SYNC_OP__SYNC_THREAD_CREATE || s->op == ETCH__SYNC_OP__SYNC_THREAD_JOIN;

    e.object = thread ? s->other : s->object;
    if (s->op == ETCH__SYNC_OP__SYNC_THREAD_START && s->object == 0)
        e.object = s->tid;
    stamp.latency = b->r->source == ETCH__SOURCE__SOURCE_LAB ? LAB_LATENCY : span_of_call(s, stamp.stamping);
    stamp.buffered = s->op == ETCH__SYNC_OP__SYNC_SPIN_UNLOCK; /* the only unlock that is a plain store */
    stamp.drained = drains(s);
    return add(b->t, e, stamp, (uint64_t)index << 2 | KIND_SYNC);
}

static bool add_switch(struct building *b, size_t index)
{
    const Etch__Switch *s = &b->r->switches.v[index];
    struct etch_event e = {.kind = ETCH_EVENT_MARK};
    struct etch_event_stamp stamp =
        stamp_of(b->t, s->tsc, s->cpu, s->perf_ns, s->in ? ETCH_STAMPED_AFTER : ETCH_STAMPED_BEFORE);

    stamp.drained = true;
    return add(b->t, e, stamp, (uint64_t)index << 2 | KIND_SWITCH);
}

static const struct etch_event_stamp no_stamp = {.cpu = ETCH_CPU_NONE, .stamping = ETCH_STAMPED_NOT};

/* A mark has bounds of its own. set_mark_bounds() sets them after all other bounds. */
static bool add_mark(struct building *b, size_t index)
{
    struct etch_event e = {.kind = ETCH_EVENT_MARK};

    b->t->of_mark.v[index] = (uint32_t)b->t->events.n;
    return add(b->t, e, no_stamp, KIND_OTHER);
}

/* ---- Who made what ---- */

/* One record, on its way to its thread's sequence of its kind. */
struct entry {
    uint64_t at; /* the order of records of one kind; 0: the order in which they were written */
    uint64_t index;
    uint32_t tid;
    uint8_t kind;
};

static int by_thread_and_place(const void *x, const void *y)
{
    const struct entry *a = x;
    const struct entry *b = y;

    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The time of a switch on the reference CPU, by the middle of its CPU's range. 0: the order of the switch among those
 * of its thread is not known. */
static uint64_t switch_time(const struct etch_timeline *t, const Etch__Switch *s)
{
    uint64_t tsc = s->tsc;

    if (s->perf_ns)
        return s->perf_ns;
    if (s->cpu >= t->clocks.n_cpus || !t->clocks.cpus[s->cpu].known)
        return 0;
    return tsc - (uint64_t)(t->clocks.cpus[s->cpu].lo / 2 + t->clocks.cpus[s->cpu].hi / 2);
}

static size_t list_entries(const struct building *b, struct entry *v)
{
    const struct etch_recording *r = b->r;
    size_t n = 0;

    for (size_t i = 0; i < r->accesses.n; i++) /* accesses of debug registers come by CPU, so their times order them */
        v[n++] = (struct entry){r->accesses.v[i].perf_ns, i, r->accesses.v[i].tid, KIND_ACCESS};
    for (size_t i = 0; i < r->syncs.n; i++)
        v[n++] = (struct entry){0, i, r->syncs.v[i].tid, KIND_SYNC};
    for (size_t i = 0; i < r->switches.n; i++)
        if (switch_time(b->t, &r->switches.v[i]))
            v[n++] = (struct entry){switch_time(b->t, &r->switches.v[i]), i, r->switches.v[i].tid, KIND_SWITCH};
    for (size_t i = 0; i < b->options->n_marks; i++)
        v[n++] = (struct entry){0, i, b->options->marks[i].tid, KIND_OTHER};
    qsort(v, n, sizeof(*v), by_thread_and_place);
    return n;
}

/* ---- Losses ---- */

enum lost { LOST_NOTHING, LOST_SYNC, LOST_ANYTHING };

/* The records of a thread that a loss may have taken. The loss of a watch takes accesses to its location only: see
 * add_locations(). */
static enum lost taken_by(const Etch__Loss *loss)
{
    switch (loss->cause) {
    case ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED:
    case ETCH__LOSS_CAUSE__LOSS_AUX_PARTIAL:
    case ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION:
    case ETCH__LOSS_CAUSE__LOSS_OVERFLOW:
    case ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE:
    case ETCH__LOSS_CAUSE__LOSS_DECODE:
        return LOST_NOTHING; /* control flow */
    case ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED:
        return loss->bytes ? LOST_NOTHING : LOST_SYNC;
    default:
        return loss->watch ? LOST_NOTHING : LOST_ANYTHING;
    }
}

/* The records that may be missing from this thread. A loss that names no thread may be of any thread. */
static enum lost lost_of(const struct etch_recording *r, uint32_t tid)
{
    enum lost most = r->cut || r->damaged ? LOST_ANYTHING : LOST_NOTHING;

    for (size_t i = 0; i < r->losses.n && most != LOST_ANYTHING; i++)
        if ((r->losses.v[i]->tid == 0 || r->losses.v[i]->tid == tid) && taken_by(r->losses.v[i]) > most)
            most = taken_by(r->losses.v[i]);
    return most;
}

static bool begin_sequence(struct etch_timeline *t, uint32_t tid, uint32_t task)
{
    return etch_array_push(&t->tids, tid) && etch_array_push(&t->tasks, task);
}

/* The place of a loss within a thread is not known reliably. The loss is therefore the first event of a sequence, which
 * means anywhere. */
static bool add_loss(struct building *b, enum lost lost)
{
    struct etch_event e = {.kind = ETCH_EVENT_LOSS, .access = lost == LOST_SYNC ? ETCH_LOST_SYNC : ETCH_LOST_ANYTHING};

    return lost == LOST_NOTHING || add(b->t, e, no_stamp, KIND_OTHER);
}

/* Adds the losses of threads that left no record at all. */
static bool add_silent_losses(struct building *b)
{
    struct etch_timeline *t = b->t;

    for (size_t i = 0; i < b->r->losses.n; i++) {
        uint32_t tid = b->r->losses.v[i]->tid;
        bool heard = tid == 0 || taken_by(b->r->losses.v[i]) == LOST_NOTHING;

        for (size_t k = 0; k < t->tids.n && !heard; k++)
            heard = t->tids.v[k] == tid;
        if (!heard && (!begin_sequence(t, tid, (uint32_t)t->tids.n) || !add_loss(b, taken_by(b->r->losses.v[i]))))
            return false;
    }
    return true;
}

/* ---- Sequences ---- */

static bool add_entry(struct building *b, const struct entry *entry)
{
    switch (entry->kind) {
    case KIND_ACCESS:
        if (b->of_access)
            b->of_access[entry->index] = (uint32_t)b->t->events.n;
        return add_access(b, entry->index);
    case KIND_SYNC:
        if (b->of_sync)
            b->of_sync[entry->index] = (uint32_t)b->t->events.n;
        return add_sync(b, entry->index);
    case KIND_SWITCH:
        return add_switch(b, entry->index);
    default:
        return add_mark(b, entry->index);
    }
}

/* Makes a sequence for each thread and kind. */
static bool add_sequences(struct building *b, const struct entry *v, size_t n)
{
    struct etch_timeline *t = b->t;
    uint32_t task = 0;

    for (size_t i = 0; i < n; i++) {
        bool thread = i == 0 || v[i].tid != v[i - 1].tid;
        struct etch_sequence *sequence;

        if (thread) {
            task = (uint32_t)t->tids.n;
            if (!etch_array_push(&b->threads, (struct thread){{{0}}}))
                return false;
        }
        sequence = &b->threads.v[b->threads.n - 1].sequences[v[i].kind];
        if (thread || v[i].kind != v[i - 1].kind) {
            sequence->first = t->events.n;
            if (!begin_sequence(t, v[i].tid, task) || !add_loss(b, lost_of(b->r, v[i].tid)))
                return false;
        }
        if (!add_entry(b, &v[i]))
            return false;
        sequence->n = t->events.n - sequence->first;
    }
    return true;
}

static bool tie_sequences(struct building *b)
{
    for (size_t i = 0; i < b->threads.n; i++)
        for (int x = 0; x < KINDS; x++)
            for (int y = 0; y < x; y++)
                if (!etch_timeline_tie(b->t, b->threads.v[i].sequences[x], b->threads.v[i].sequences[y]))
                    return false;
    return true;
}

/* Adds the caller's ties between marks and records as links. */
static int add_ties(struct building *b, struct etch_error *err)
{
    const struct etch_timeline_options *options = b->options;

    for (size_t i = 0; i < options->n_ties; i++) {
        const struct etch_mark_tie *tie = &options->ties[i];
        size_t records = tie->sync ? b->r->syncs.n : b->r->accesses.n;
        struct etch_order_link link;
        uint32_t mark, record;

        if (tie->mark >= options->n_marks || tie->record >= records)
            return etch_error_set(err, "tie %zu is of a mark or a record that there is not", i);
        mark = b->t->of_mark.v[tie->mark];
        record = tie->sync ? b->of_sync[tie->record] : b->of_access[tie->record];
        link = (struct etch_order_link){.from = tie->mark_first ? mark : record, .to = tie->mark_first ? record : mark};
        if (!etch_array_push(&b->t->links, link))
            return etch_error_no_memory(err);
    }
    return 0;
}

/* Were all reads and writes of the watch seen, of every thread and of the kernel? The watch must be armed for both,
 * have no loss of its own, and no access from before it was armed everywhere. */
static bool fully_seen(const struct building *b, const Etch__Watch *w, bool *initial)
{
    const struct etch_recording *r = b->r;

    *initial = w->initially_case == ETCH__WATCH__INITIALLY_INITIAL_VALUE;
    if (!w->reads || !w->writes || w->skipped || w->kernel_unseen)
        return false;
    for (size_t i = 0; i < r->losses.n; i++)
        if (r->losses.v[i]->watch == w->id && w->id)
            return false;
    for (size_t i = 0; i < r->accesses.n; i++) {
        const Etch__Access *a = &r->accesses.v[i];

        if ((w->id ? a->watch != w->id : a->address != w->address) || a->tsc == 0)
            continue;
        if (a->tsc < w->armed_tsc)
            return false;
        if (a->tsc < w->initial_tsc)
            *initial = false; /* the initial value may have been read after this access */
    }
    return true;
}

static bool add_locations(struct building *b)
{
    for (size_t i = 0; i < b->r->watches.n; i++) {
        const Etch__Watch *w = b->r->watches.v[i];
        struct etch_watched location = {.object = w->id ? w->id : w->address, .initial = w->initial_value};

        if (fully_seen(b, w, &location.initial_known) && !etch_array_push(&b->t->locations, location))
            return false;
    }
    return true;
}

/* ---- All of it ---- */

static void set_mark_bounds(const struct building *b)
{
    for (size_t i = 0; i < b->options->n_marks; i++) {
        struct etch_event *e = &b->t->events.v[b->t->of_mark.v[i]];

        e->lo = b->options->marks[i].lo;
        e->hi = b->options->marks[i].hi;
    }
}

static bool build_events(struct building *b, struct entry *entries)
{
    struct etch_timeline *t = b->t;
    size_t n = list_entries(b, entries);

    if (!add_sequences(b, entries, n) || !add_silent_losses(b) || !add_locations(b))
        return false;
    etch_timeline_bounds(t->events.v, t->stamps.v, t->events.n, (uint32_t)t->tids.n);
    set_mark_bounds(b);
    return tie_sequences(b);
}

static struct etch_order_input input_of(const struct etch_timeline *t, const struct etch_timeline_options *options)
{
    return (struct etch_order_input){.events = t->events.v,
                                     .n = t->events.n,
                                     .threads = (uint32_t)t->tids.n,
                                     .tasks = t->tasks.v,
                                     .links = t->links.v,
                                     .n_links = t->links.n,
                                     .cpus = t->clocks.cpus,
                                     .n_cpus = t->clocks.n_cpus,
                                     .reference = t->clocks.reference,
                                     .locations = t->locations.v,
                                     .n_locations = t->locations.n,
                                     .signals_wake = options->signals_wake};
}

int etch_timeline_build(struct etch_timeline *t, const struct etch_recording *r,
                        const struct etch_timeline_options *options, struct etch_error *err)
{
    size_t n = r->accesses.n + r->syncs.n + r->switches.n + options->n_marks;
    struct building b = {.t = t, .r = r, .options = options};
    bool guest = r->host && r->host->hypervisor[0];
    struct entry *entries = malloc((n + 1) * sizeof(*entries));
    int status = -1;

    memset(t, 0, sizeof(*t));
    b.of_access = options->n_ties ? malloc((r->accesses.n + 1) * sizeof(uint32_t)) : NULL;
    b.of_sync = options->n_ties ? malloc((r->syncs.n + 1) * sizeof(uint32_t)) : NULL;
    if (!entries || (options->n_ties && (!b.of_access || !b.of_sync)) ||
        !etch_array_reserve(&t->of_mark, options->n_marks + 1)) {
        etch_error_set(err, "out of memory while ordering %zu records", n);
        goto out;
    }
    t->of_mark.n = options->n_marks;
    if (etch_timeline_clocks(&t->clocks, r->clocks.v, r->clocks.n, guest, options->margin, err) < 0)
        goto out;
    t->perf_is_tsc = r->host && strcmp(r->host->clocksource, "tsc") == 0;
    if (!build_events(&b, entries))
        etch_error_set(err, "out of memory while ordering %zu records", n);
    else
        status = add_ties(&b, err);
    t->input = input_of(t, options);
out:
    free(entries);
    etch_array_free(&b.threads);
    free(b.of_access);
    free(b.of_sync);
    if (status < 0)
        etch_timeline_free(t);
    return status;
}

void etch_timeline_free(struct etch_timeline *t)
{
    etch_array_free(&t->events);
    etch_array_free(&t->stamps);
    etch_array_free(&t->locations);
    etch_array_free(&t->tids);
    etch_array_free(&t->tasks);
    etch_array_free(&t->source);
    etch_array_free(&t->of_mark);
    etch_array_free(&t->links);
    etch_timeline_clocks_free(&t->clocks);
}
