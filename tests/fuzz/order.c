/* SPDX-License-Identifier: MIT */
/* Any records as a recording: accesses, synchronisation, switches, losses, clocks, marks with ties. No crash and no
 * hang; what comes out is an order whatever went in: never both ways, carried on from one pair to the next, with
 * reasons that lead from one event to the other, and a sequence that respects it. */
#include "decoder/timeline.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 256
#define CPUS 4

/* The bytes, a few at a time. */
struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t take(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

/* Mostly small, so that times, objects and values meet; at times beyond all sense. */
static uint64_t number(struct input *in)
{
    uint8_t byte = take(in);

    if (byte == 0xff)
        return UINT64_MAX - take(in);
    if (byte == 0xfe)
        return (uint64_t)INT64_MAX + take(in);
    return byte & 1 ? byte : (uint64_t)byte * 256 + take(in);
}

struct recording {
    struct etch_recording r;
    Etch__Host host;
    Etch__Clock clocks[2], *clock_list[2];
    Etch__Skew skews[2][CPUS], *skew_list[2][CPUS];
    Etch__PerfClock perf;
    Etch__Watch watches[2], *watch_list[2];
    Etch__Loss losses[RECORDS], *loss_list[RECORDS];
    struct etch_mark marks[RECORDS];
    struct etch_mark_tie ties[RECORDS];
    struct etch_timeline_options options;
};

static void make_clocks(struct recording *m, struct input *in)
{
    static char tsc[] = "tsc", none[] = "", kvm[] = "KVM";
    uint8_t flags = take(in);

    etch__host__init(&m->host);
    m->host.clocksource = flags & 1 ? tsc : none;
    m->host.hypervisor = flags & 2 ? kvm : none;
    m->r.host = &m->host;
    etch__perf_clock__init(&m->perf);
    m->perf.tsc_per_ns = flags & 4 ? 1 : 1e-300;
    m->perf.error_cycles = take(in);
    for (int i = 0; i < 2; i++) {
        Etch__Clock *c = &m->clocks[i];

        etch__clock__init(c);
        c->phase = i ? ETCH__CLOCK_PHASE__CLOCK_AFTER : ETCH__CLOCK_PHASE__CLOCK_BEFORE;
        c->constant = c->nonstop = 1;
        c->perf_clock = &m->perf;
        c->skews = m->skew_list[i];
        for (uint32_t k = 0; k < CPUS - 1; k++) {
            Etch__Skew *s = m->skew_list[i][c->n_skews++] = &m->skews[i][k];

            etch__skew__init(s);
            s->cpu = k + 1;
            s->lo = (int64_t)number(in);
            s->hi = (int64_t)((uint64_t)s->lo + number(in));
            s->method = ETCH__SKEW_METHOD__SKEW_BOUNDS;
        }
        m->clock_list[i] = c;
    }
    m->r.clocks.v = m->clock_list;
    m->r.clocks.n = flags & 8 ? 2 : flags & 16 ? 1 : 0;
    m->options.margin = flags & 32 ? take(in) : 0;
    m->options.signals_wake = flags & 64;
    m->options.trust_latency = flags & 128;
    for (uint32_t i = 0; i < 2; i++) {
        etch__watch__init(&m->watches[i]);
        m->watches[i].id = i + 1;
        m->watches[i].reads = m->watches[i].writes = true;
        m->watches[i].initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
        m->watch_list[i] = &m->watches[i];
    }
    m->r.watches.v = m->watch_list;
    m->r.watches.n = 2;
    m->r.losses.v = m->loss_list;
}

static void add_access(struct recording *m, struct input *in, uint32_t tid, uint32_t cpu)
{
    Etch__Access a = ETCH__ACCESS__INIT;
    uint8_t flags = take(in);

    a.tid = tid;
    a.cpu = cpu;
    a.tsc = number(in);
    a.perf_ns = flags & 1 ? a.tsc : 0;
    a.since = flags & 2 ? number(in) : 0;
    a.watch = flags >> 2 & 3;
    a.write = flags >> 4 & 1;
    a.read = flags >> 5 & 1;
    a.direction_unknown = (flags >> 6) == 3;
    a.known_case = flags & 128 ? ETCH__ACCESS__KNOWN_VALUE : ETCH__ACCESS__KNOWN__NOT_SET;
    a.value = take(in) & 7;
    (void)!etch_array_push(&m->r.accesses, a);
}

static void add_sync(struct recording *m, struct input *in, uint32_t tid, uint32_t cpu)
{
    Etch__Sync s = ETCH__SYNC__INIT;
    uint8_t flags = take(in);

    s.tid = tid;
    s.cpu = cpu;
    s.op = (Etch__SyncOp)(take(in) % 27);
    s.tsc = number(in);
    s.across = flags & 1 ? number(in) : 0;
    s.object = flags >> 1 & 3;
    s.other = flags >> 3 & 3;
    s.result = flags >> 5 & 1 ? 16 : flags >> 6 & 1 ? -1 : 0;
    (void)!etch_array_push(&m->r.syncs, s);
}

static void add_mark(struct recording *m, struct input *in, uint32_t tid, uint32_t cpu)
{
    struct etch_step step = {.tid = tid, .cpu = cpu == CPUS ? UINT32_MAX : cpu};
    uint8_t flags = take(in);

    step.time.lo = number(in);
    step.time.hi = flags & 1 ? UINT64_MAX : step.time.lo + number(in);
    if (flags & 2 && (m->r.syncs.n || m->r.accesses.n))
        m->ties[m->options.n_ties++] = (struct etch_mark_tie){
            .mark = m->options.n_marks, .record = take(in) % 8, .sync = flags & 4, .mark_first = flags & 8};
    m->marks[m->options.n_marks++] = etch_mark_of_step(&step);
}

static void add_other(struct recording *m, struct input *in, uint32_t tid, uint32_t cpu)
{
    Etch__Switch s = ETCH__SWITCH__INIT;
    uint8_t flags = take(in);

    if (flags & 1) {
        Etch__Loss *loss = &m->losses[m->r.losses.n];

        etch__loss__init(loss);
        loss->cause = (Etch__LossCause)(take(in) % 13);
        loss->tid = flags & 2 ? tid : 0;
        loss->watch = flags >> 2 & 3;
        loss->bytes = flags >> 4;
        m->loss_list[m->r.losses.n++] = loss;
        return;
    }
    s.tid = tid;
    s.cpu = cpu;
    s.in = flags & 2;
    s.tsc = number(in);
    s.perf_ns = flags & 4 ? s.tsc : 0;
    (void)!etch_array_push(&m->r.switches, s);
}

static void check_pair(const struct etch_order *order, size_t a, size_t b, size_t n)
{
    enum etch_relation relation = etch_order_ask(order, a, b), back = etch_order_ask(order, b, a);
    struct etch_evidence links[64];
    size_t count;

    if ((relation == ETCH_BEFORE) != (back == ETCH_AFTER) || (relation == ETCH_UNORDERED) != (back == ETCH_UNORDERED))
        abort();
    count = etch_order_why(order, a, b, links, 64);
    if ((count > 0) != (relation == ETCH_BEFORE || relation == ETCH_AFTER))
        abort();
    for (size_t i = 0; i < count && i < 64; i++)
        if (etch_order_ask(order, links[i].from, links[i].to) != ETCH_BEFORE)
            abort();
    for (size_t c = 0; relation == ETCH_BEFORE && c < n; c++)
        if (etch_order_ask(order, b, c) == ETCH_BEFORE && etch_order_ask(order, a, c) != ETCH_BEFORE)
            abort();
}

static void check(const struct etch_order *order, size_t n)
{
    const uint32_t *sequence = etch_order_sequence(order);

    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (etch_order_ask(order, sequence[i], sequence[k]) == ETCH_AFTER)
                abort();
    for (size_t a = 0; a < n && n < 48; a++)
        for (size_t b = 0; b < n; b++)
            check_pair(order, a, b, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct recording *m = calloc(1, sizeof(*m));
    struct etch_order *order = NULL;
    struct etch_timeline t;
    struct etch_error err;

    if (!m)
        return 0;
    make_clocks(m, &in);
    m->options.marks = m->marks;
    m->options.ties = m->ties;
    for (size_t i = 0; i < RECORDS && in.left; i++) {
        uint8_t kind = take(&in);
        uint32_t tid = 1 + (kind >> 2 & 3), cpu = kind >> 4 & 7;

        cpu = cpu > CPUS ? cpu % 2 : cpu;
        if ((kind & 3) == 0)
            add_access(m, &in, tid, cpu);
        else if ((kind & 3) == 1)
            add_sync(m, &in, tid, cpu);
        else if ((kind & 3) == 2)
            add_mark(m, &in, tid, cpu);
        else
            add_other(m, &in, tid, cpu);
    }
    if (etch_timeline_build(&t, &m->r, &m->options, &err) == 0) {
        if (etch_order_build(&order, &t.input, &err) < 0)
            abort();
        check(order, t.events.n);
        etch_order_free(order);
        etch_timeline_free(&t);
    }
    etch_array_free(&m->r.accesses);
    etch_array_free(&m->r.syncs);
    etch_array_free(&m->r.switches);
    free(m);
    return 0;
}
