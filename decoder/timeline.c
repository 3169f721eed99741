/* SPDX-License-Identifier: MIT */
/* Stamps to bounds; see timeline.h. */
#include "decoder/timeline.h"

#include <math.h>
#include <stdio.h>
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

static struct etch_bound upper(const struct etch_event_stamp *s, uint32_t visibility)
{
    uint64_t reach = (uint64_t)s->error + visibility;
    struct etch_bound bound = {.tsc = s->tsc > UINT64_MAX - reach ? UINT64_MAX : s->tsc + reach, .cpu = s->cpu};

    return bound;
}

/* Where the longest time from event to stamp is known, the event is no older than that; the later bound counts, if the
 * two can be compared. */
static void use_latency(struct etch_event *e, const struct etch_event_stamp *s)
{
    uint64_t back = (uint64_t)s->latency + s->error;
    struct etch_bound bound = {.tsc = s->tsc > back ? s->tsc - back : 0, .cpu = s->cpu};

    if (s->latency == 0)
        return;
    if (e->lo.cpu != bound.cpu || bound.tsc > e->lo.tsc)
        e->lo = bound;
}

void etch_timeline_bounds(struct etch_event *events, const struct etch_event_stamp *stamps, size_t n, uint32_t threads)
{
    const struct etch_event_stamp **near = calloc((size_t)threads + 1, sizeof(*near));

    for (size_t i = 0; i < n; i++)
        events[i].lo = events[i].hi = (struct etch_bound){.cpu = ETCH_CPU_NONE};
    if (!near)
        return; /* no bounds: nothing is claimed */
    for (size_t i = 0; i < n; i++) {
        const struct etch_event_stamp **last = &near[events[i].thread];

        if (stamps[i].stamping == ETCH_STAMPED_BEFORE)
            events[i].lo = lower(&stamps[i]);
        else if (*last)
            events[i].lo = lower(*last);
        if (stamps[i].stamping == ETCH_STAMPED_AFTER) {
            events[i].hi = upper(&stamps[i], stamps[i].visibility);
            use_latency(&events[i], &stamps[i]);
        }
        if (stamps[i].stamping != ETCH_STAMPED_NOT)
            *last = &stamps[i];
    }
    memset(near, 0, ((size_t)threads + 1) * sizeof(*near));
    for (size_t i = n; i-- > 0;) {
        const struct etch_event_stamp **next = &near[events[i].thread];

        if (stamps[i].stamping != ETCH_STAMPED_AFTER && *next)
            events[i].hi = upper(*next, stamps[i].visibility);
        if (stamps[i].stamping != ETCH_STAMPED_NOT)
            *next = &stamps[i];
    }
    free(near);
}

/* ---- Clocks ---- */

static const Etch__Skew *find_skew(const Etch__Clock *clock, uint32_t cpu, Etch__SkewMethod method)
{
    for (size_t i = 0; clock && i < clock->n_skews; i++)
        if (clock->skews[i]->cpu == cpu && clock->skews[i]->method == method)
            return clock->skews[i];
    return NULL;
}

static int refuse(struct etch_timeline_clocks *clocks, const char *why)
{
    clocks->refused = true;
    snprintf(clocks->why, sizeof(clocks->why), "%s", why);
    return 0;
}

static bool apart(const Etch__Skew *x, const Etch__Skew *y)
{
    return x && y && (x->hi < y->lo || y->hi < x->lo);
}

static void set_range(struct etch_timeline_clocks *clocks, uint32_t cpu, const Etch__Clock *before,
                      const Etch__Clock *after, int64_t margin)
{
    const Etch__Skew *b = find_skew(before, cpu, ETCH__SKEW_METHOD__SKEW_BOUNDS);
    const Etch__Skew *a = find_skew(after, cpu, ETCH__SKEW_METHOD__SKEW_BOUNDS);
    struct etch_cpu_range *range = &clocks->cpus[cpu];

    if (cpu == clocks->reference) {
        range->known = true;
        return;
    }
    if (!b || b->lo > b->hi || (a && a->lo > a->hi))
        return;
    if (apart(a, b)) {
        clocks->changed++;
        range->local = false; /* which way, and when, is not known */
        return;
    }
    clocks->shifted += apart(find_skew(before, cpu, ETCH__SKEW_METHOD__SKEW_STATISTICS),
                             find_skew(after, cpu, ETCH__SKEW_METHOD__SKEW_STATISTICS));
    range->lo = (a && a->lo < b->lo ? a->lo : b->lo) - margin;
    range->hi = (a && a->hi > b->hi ? a->hi : b->hi) + margin;
    range->known = true;
}

static void set_conversion(struct etch_timeline_clocks *clocks, const Etch__Clock *before, const Etch__Clock *after)
{
    /* The one after was fitted over the whole recording. */
    const Etch__PerfClock *p = after && after->perf_clock ? after->perf_clock : before->perf_clock;

    if (!p || !(p->tsc_per_ns > 0) || !isfinite(p->tsc_per_ns))
        return;
    clocks->tsc_per_ns = p->tsc_per_ns;
    clocks->ns_zero = p->ns_zero;
    clocks->tsc_zero = p->tsc_zero;
    clocks->conversion_error = p->error_cycles;
}

int etch_timeline_clocks(struct etch_timeline_clocks *clocks, Etch__Clock *const *records, size_t n, int64_t margin,
                         struct etch_error *err)
{
    const Etch__Clock *before = NULL, *after = NULL;

    memset(clocks, 0, sizeof(*clocks));
    for (size_t i = 0; i < n; i++) {
        if (records[i]->phase == ETCH__CLOCK_PHASE__CLOCK_BEFORE)
            before = records[i];
        if (records[i]->phase == ETCH__CLOCK_PHASE__CLOCK_AFTER)
            after = records[i];
        for (size_t k = 0; k < records[i]->n_skews; k++)
            if (records[i]->skews[k]->cpu < 65536 && records[i]->skews[k]->cpu >= clocks->n_cpus)
                clocks->n_cpus = records[i]->skews[k]->cpu + 1;
        if (records[i]->reference_cpu < 65536 && records[i]->reference_cpu >= clocks->n_cpus)
            clocks->n_cpus = records[i]->reference_cpu + 1;
    }
    clocks->cpus = calloc((size_t)clocks->n_cpus + 1, sizeof(*clocks->cpus));
    if (!clocks->cpus)
        return etch_error_set(err, "out of memory");
    for (uint32_t cpu = 0; cpu < clocks->n_cpus; cpu++)
        clocks->cpus[cpu].local = true;
    if (!before)
        return refuse(clocks, "the clocks were not measured before the recording");
    clocks->reference = before->reference_cpu;
    set_conversion(clocks, before, after);
    if (!before->constant || !before->nonstop)
        return refuse(clocks, "the time stamp counter of that machine is not constant and nonstop");
    if (after && after->reference_cpu != before->reference_cpu)
        return refuse(clocks, "the clocks were measured against different CPUs before and after");
    for (uint32_t cpu = 0; cpu < clocks->n_cpus; cpu++)
        set_range(clocks, cpu, before, after, margin);
    return 0;
}

void etch_timeline_clocks_free(struct etch_timeline_clocks *clocks)
{
    free(clocks->cpus);
    clocks->cpus = NULL;
}

bool etch_timeline_from_perf(const struct etch_timeline_clocks *clocks, uint64_t ns, uint64_t *tsc, uint32_t *error)
{
    double cycles;

    if (clocks->tsc_per_ns == 0)
        return false;
    cycles = (double)(int64_t)(ns - clocks->ns_zero) * clocks->tsc_per_ns;
    if (!(fabs(cycles) < 9e18))
        return false;
    *tsc = clocks->tsc_zero + (uint64_t)(int64_t)llround(cycles);
    *error = clocks->conversion_error > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)clocks->conversion_error;
    return true;
}

/* ---- Events ---- */

static uint32_t thread_number(struct etch_timeline *t, uint32_t tid)
{
    for (size_t i = t->tids.n; i-- > 0;)
        if (t->tids.v[i] == tid)
            return (uint32_t)i;
    if (!etch_array_push(&t->tids, tid))
        return UINT32_MAX;
    return (uint32_t)(t->tids.n - 1);
}

/* The stamp of a record: perf's, converted, or TSC. The kernel makes its clock from the TSC of the CPU it runs on, by
 * one function for all, so a converted stamp is in that CPU's time; only with another clock source is it in one time
 * for all. */
static struct etch_event_stamp stamp_of(const struct etch_timeline *t, uint64_t tsc, uint32_t cpu, uint64_t perf_ns,
                                        enum etch_stamping stamping)
{
    struct etch_event_stamp stamp = {.tsc = tsc, .cpu = cpu, .stamping = (uint8_t)stamping};

    if (perf_ns && etch_timeline_from_perf(&t->clocks, perf_ns, &stamp.tsc, &stamp.error))
        stamp.cpu = t->perf_is_tsc ? cpu : t->clocks.reference;
    else if (tsc == 0)
        stamp.stamping = ETCH_STAMPED_NOT;
    return stamp;
}

static bool add(struct etch_timeline *t, uint32_t tid, struct etch_event event, struct etch_event_stamp stamp,
                uint64_t source)
{
    event.thread = thread_number(t, tid);
    return event.thread != UINT32_MAX && etch_array_push(&t->events, event) && etch_array_push(&t->stamps, stamp) &&
           etch_array_push(&t->source, source);
}

static bool add_access(struct etch_timeline *t, const Etch__Access *a, const struct etch_timeline_options *options,
                       uint64_t source, uint64_t latency)
{
    struct etch_event e = {.kind = ETCH_EVENT_ACCESS, .object = a->watch ? a->watch : a->address};
    struct etch_event_stamp stamp = stamp_of(t, a->tsc, a->cpu, a->perf_ns, ETCH_STAMPED_AFTER);
    bool known = a->known_case == ETCH__ACCESS__KNOWN_VALUE;

    if (a->direction_unknown)
        e.access = ETCH_ACCESS_READ | ETCH_ACCESS_WRITE;
    else if (a->write)
        e.access =
            (uint8_t)(ETCH_ACCESS_WRITE | (known ? ETCH_ACCESS_WRITTEN_KNOWN : 0) | (a->read ? ETCH_ACCESS_READ : 0));
    else
        e.access = (uint8_t)(ETCH_ACCESS_READ | (known ? ETCH_ACCESS_SEEN_KNOWN : 0));
    e.written = e.seen = known ? a->value : 0;
    if (options->trust_latency && latency < UINT32_MAX)
        stamp.latency = (uint32_t)latency;
    if (a->since && a->since < a->tsc && a->tsc - a->since < UINT32_MAX && !a->perf_ns)
        stamp.latency = (uint32_t)(a->tsc - a->since);
    stamp.visibility = a->perf_ns ? 0 : options->visibility; /* the way into the kernel drains the store buffer */
    return add(t, a->tid, e, stamp, source);
}

static bool is_thread_op(Etch__SyncOp op)
{
    return op == ETCH__SYNC_OP__SYNC_THREAD_CREATE || op == ETCH__SYNC_OP__SYNC_THREAD_JOIN;
}

static bool add_sync(struct etch_timeline *t, const Etch__Sync *s, uint64_t source)
{
    struct etch_event e = {.kind = ETCH_EVENT_SYNC, .op = (uint8_t)s->op, .result = s->result, .other = s->other};

    e.object = is_thread_op(s->op) ? s->other : s->object;
    if (s->op == ETCH__SYNC_OP__SYNC_THREAD_START && s->object == 0)
        e.object = s->tid;
    return add(t, s->tid, e, stamp_of(t, s->tsc, s->cpu, 0, etch_timeline_stamping(s->op)), source);
}

/* What a thread's records are put in order by: their stamps, of one thread, which only grow where its CPUs' clocks
 * agree; records of one kind keep the order in which they were recorded. */
struct entry {
    uint64_t at;
    uint64_t source;
    uint32_t tid;
};

static int by_thread_and_time(const void *x, const void *y)
{
    const struct entry *a = x;
    const struct entry *b = y;

    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->source < b->source ? -1 : a->source > b->source;
}

/* In the reference CPU's time, by the middle of its range. */
static uint64_t rough_time(const struct etch_timeline *t, uint64_t tsc, uint32_t cpu, uint64_t perf_ns)
{
    uint32_t error;

    if (perf_ns && etch_timeline_from_perf(&t->clocks, perf_ns, &tsc, &error))
        return tsc;
    if (cpu < t->clocks.n_cpus && t->clocks.cpus[cpu].known)
        tsc -= (uint64_t)(t->clocks.cpus[cpu].lo / 2 + t->clocks.cpus[cpu].hi / 2);
    return tsc;
}

static void list_entries(const struct etch_timeline *t, const struct etch_recording *r, struct entry *v)
{
    size_t n = 0;

    for (size_t i = 0; i < r->accesses.n; i++) {
        const Etch__Access *a = &r->accesses.v[i];

        v[n++] = (struct entry){.at = rough_time(t, a->tsc, a->cpu, a->perf_ns), .source = i << 2, .tid = a->tid};
    }
    for (size_t i = 0; i < r->syncs.n; i++) {
        const Etch__Sync *s = &r->syncs.v[i];

        v[n++] = (struct entry){.at = rough_time(t, s->tsc, s->cpu, 0), .source = i << 2 | 1, .tid = s->tid};
    }
    for (size_t i = 0; i < r->switches.n; i++) {
        const Etch__Switch *s = &r->switches.v[i];

        v[n++] = (struct entry){.at = rough_time(t, s->tsc, s->cpu, s->perf_ns), .source = i << 2 | 2, .tid = s->tid};
    }
    qsort(v, n, sizeof(*v), by_thread_and_time);
}

/* Whether a loss may concern this thread. One that names no thread may be of any. */
static bool may_miss(const struct etch_recording *r, uint32_t tid)
{
    if (r->cut || r->damaged)
        return true;
    for (size_t i = 0; i < r->losses.n; i++)
        if (r->losses.v[i]->tid == 0 || r->losses.v[i]->tid == tid)
            return true;
    return false;
}

/* Where in a thread records are missing is not known well enough to be relied on: the mark is the thread's first event,
 * which says anywhere. */
static bool add_loss(struct etch_timeline *t, uint32_t tid)
{
    static const struct etch_event_stamp none = {.cpu = ETCH_CPU_NONE, .stamping = ETCH_STAMPED_NOT};
    struct etch_event e = {.kind = ETCH_EVENT_LOSS};

    return add(t, tid, e, none, 3);
}

static bool add_entries(struct etch_timeline *t, const struct etch_recording *r, const struct entry *v, size_t n,
                        const struct etch_timeline_options *options)
{
    uint64_t latency = r->clocks.n ? r->clocks.v[0]->trap_latency_hi : 0;

    for (size_t i = 0; i < n; i++) {
        size_t index = v[i].source >> 2;
        bool good;

        if ((i == 0 || v[i].tid != v[i - 1].tid) && may_miss(r, v[i].tid) && !add_loss(t, v[i].tid))
            return false;
        if ((v[i].source & 3) == 0) {
            good = add_access(t, &r->accesses.v[index], options, v[i].source, latency);
        } else if ((v[i].source & 3) == 1) {
            good = add_sync(t, &r->syncs.v[index], v[i].source);
        } else {
            const Etch__Switch *s = &r->switches.v[index];
            struct etch_event e = {.kind = ETCH_EVENT_MARK};

            good = add(t, s->tid, e,
                       stamp_of(t, s->tsc, s->cpu, s->perf_ns, s->in ? ETCH_STAMPED_AFTER : ETCH_STAMPED_BEFORE),
                       v[i].source);
        }
        if (!good)
            return false;
    }
    return true;
}

/* A watch whose reads and writes were all seen: armed, both directions, nothing lost. */
static bool add_locations(struct etch_timeline *t, const struct etch_recording *r)
{
    for (size_t i = 0; i < r->watches.n; i++) {
        const Etch__Watch *w = r->watches.v[i];
        struct etch_watched location = {.object = w->id ? w->id : w->address,
                                        .initial = w->initial_value,
                                        .initial_known = w->initially_case == ETCH__WATCH__INITIALLY_INITIAL_VALUE};

        if (w->reads && w->writes && !w->skipped && !etch_array_push(&t->locations, location))
            return false;
    }
    return true;
}

int etch_timeline_build(struct etch_timeline *t, const struct etch_recording *r,
                        const struct etch_timeline_options *options, struct etch_error *err)
{
    size_t n = r->accesses.n + r->syncs.n + r->switches.n;
    struct entry *entries = malloc((n + 1) * sizeof(*entries));

    memset(t, 0, sizeof(*t));
    if (!entries || etch_timeline_clocks(&t->clocks, r->clocks.v, r->clocks.n, options->margin, err) < 0) {
        free(entries);
        return etch_error_set(err, "out of memory");
    }
    t->perf_is_tsc = r->host && strcmp(r->host->clocksource, "tsc") == 0;
    list_entries(t, r, entries);
    if (!add_entries(t, r, entries, n, options) || !add_locations(t, r)) {
        free(entries);
        etch_timeline_free(t);
        return etch_error_set(err, "out of memory while ordering %zu records", n);
    }
    free(entries);
    etch_timeline_bounds(t->events.v, t->stamps.v, t->events.n, (uint32_t)t->tids.n);
    t->input = (struct etch_order_input){.events = t->events.v,
                                         .n = t->events.n,
                                         .threads = (uint32_t)t->tids.n,
                                         .cpus = t->clocks.cpus,
                                         .n_cpus = t->clocks.n_cpus,
                                         .reference = t->clocks.reference,
                                         .locations = t->locations.v,
                                         .n_locations = t->locations.n};
    return 0;
}

void etch_timeline_free(struct etch_timeline *t)
{
    etch_array_free(&t->events);
    etch_array_free(&t->stamps);
    etch_array_free(&t->locations);
    etch_array_free(&t->tids);
    etch_array_free(&t->source);
    etch_timeline_clocks_free(&t->clocks);
}
