/* SPDX-License-Identifier: MIT */
/* Intel PT through perf_event; see pt.h. The kernel writes the trace of each CPU into a ring of its own. By default
 * that ring is overwritten, and read once the program has failed or ended; with `full` it is emptied all the while. The
 * records beside the trace (who ran when, what was mapped) are taken all the while in either case. */
#include "collector/pt.h"

#include "collector/pt/filter.h"
#include "collector/pt/stream.h"
#include "collector/session/host.h"
#include "collector/session/process.h"

#include <stdio.h>
#include <stdlib.h>

#define FULL_RING_BYTES (8u << 20) /* an emptied one must bridge the pauses of etch */

struct etch_pt {
    struct etch_sink sink;
    const struct etch_record_options *options;
    struct etch_pt_caps caps;
    struct etch_pt_setting setting;
    struct etch_pt_events events;
    struct etch_process_map *processes;
    struct etch_pt_streams streams;
    struct etch_pt_filter filter;
    bool running, stopped;
    bool borrowed; /* the rings are somebody else's */
};

static int out_of_memory(struct etch_error *err)
{
    return etch_error_set(err, "cannot record with Intel PT: out of memory");
}

/* ---- perf's clock ---- */

/* The trace has TSC, the records beside it have perf's clock. Only the kernel's own conversion shows which thread ran
 * which code. */
static int read_clock(struct etch_pt *p, struct etch_error *err)
{
    etch_clock_offered_read(&p->streams.clock);
    if (p->streams.clock.offered && p->streams.clock.mult && p->streams.clock.shift <= 32)
        return 0;
    etch_error_set(err, "cannot record with Intel PT: the kernel does not say how its clock relates to the TSC");
    return etch_error_advise(err, "it does where it trusts the TSC: dmesg | grep -i tsc, clocksource tsc");
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

int etch_pt_open(struct etch_pt **pt, const struct etch_record_options *o, const struct etch_sink *sink,
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
    p->processes = etch_process_map_new(sink);
    if (!p->processes)
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

static int make_streams(struct etch_pt *p, struct etch_error *err)
{
    p->streams.sink = &p->sink;
    p->streams.processes = p->processes;
    p->streams.full = p->options->full;
    return etch_pt_streams_make(&p->streams, &p->events, err);
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
        config.filters = (uint32_t)p->filter.n;
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
    if (p->streams.list)
        return 0;
    if (read_clock(p, err) < 0 || make_streams(p, err) < 0)
        return -1;
    note_ring(p, wanted);
    write_streams(p);
    p->sink.summary->locked_bytes = p->events.locked;
    return 0;
}

int etch_pt_add_process(struct etch_pt *p, pid_t pid, struct etch_error *err)
{
    size_t wanted = p->events.request.ring;

    if (!p->streams.list && p->options->n_filters) {
        if (etch_pt_filter_make(&p->filter, p->options, p->caps.filters, pid, &p->sink, err) < 0)
            return -1;
        p->events.request.filter = p->filter.n ? p->filter.text : NULL;
    }
    if (add_threads(p, pid, err) < 0 || get_going(p, wanted, err) < 0)
        return -1;
    etch_process_map_seed(p->processes, pid);
    return 0;
}

int etch_pt_add_cgroup(struct etch_pt *p, int cgroup, struct etch_error *err)
{
    size_t wanted = p->events.request.ring;

    return etch_pt_events_add_cgroup(&p->events, cgroup, err) < 0 ? -1 : get_going(p, wanted, err);
}

int etch_pt_open_rings(struct etch_pt **pt, const struct etch_record_options *o, const struct etch_sink *sink,
                       const struct etch_pt_cpu *cpus, size_t n, struct etch_error *err)
{
    struct etch_pt *p = *pt = calloc(1, sizeof(*p));

    if (!p)
        return out_of_memory(err);
    p->sink = *sink;
    p->options = o;
    p->streams.clock = (struct etch_clock_offered){.offered = true, .mult = 1};
    p->events.request.ring = n ? cpus[0].aux.size : 0;
    p->borrowed = true;
    p->processes = etch_process_map_new(sink);
    for (size_t i = 0; i < n; i++)
        if (!etch_array_push(&p->events.cpus, cpus[i]))
            return out_of_memory(err);
    if (!p->processes || make_streams(p, err) < 0)
        return out_of_memory(err);
    write_streams(p);
    p->running = true;
    return 0;
}

void etch_pt_seed(struct etch_pt *p, pid_t pid)
{
    etch_process_map_seed(p->processes, pid);
}

void etch_pt_begin(struct etch_pt *p)
{
    etch_pt_streams_begin(&p->streams);
    p->running = true;
    etch_pt_events_enable(&p->events);
}

/* ---- Draining and stopping ---- */

static void halt(struct etch_pt *p)
{
    if (p->running)
        etch_pt_events_disable(&p->events);
    p->running = false;
}

void etch_pt_stop(struct etch_pt *p)
{
    if (!p->streams.list || p->stopped)
        return;
    halt(p);
    etch_pt_streams_drain(&p->streams, true);
    etch_pt_streams_settle(&p->streams, true);
    if (!p->options->full)
        etch_pt_streams_snapshot(&p->streams);
    etch_process_map_conclude(p->processes);
    p->sink.summary->processes += etch_process_map_processes(p->processes);
    p->sink.summary->threads += etch_process_map_threads(p->processes);
    p->stopped = true;
}

size_t etch_pt_poll(const struct etch_pt *p, struct pollfd *fds, size_t max)
{
    size_t n = p->events.cpus.n < max ? p->events.cpus.n : max;

    if (!p->running)
        return 0;
    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = p->events.cpus.v[i].fd, .events = POLLIN};
    return n;
}

void etch_pt_drain(struct etch_pt *p)
{
    if (!p->streams.list || p->stopped)
        return;
    if (!p->running) {
        etch_pt_stop(p); /* frozen: there is nothing to wait for */
        return;
    }
    if (etch_pt_streams_drain(&p->streams, false))
        etch_pt_events_resume(&p->events);
    etch_pt_streams_settle(&p->streams, false);
}

void etch_pt_close(struct etch_pt *p)
{
    if (!p)
        return;
    etch_pt_streams_release(&p->streams);
    if (p->borrowed)
        p->events.cpus.n = 0;
    etch_pt_events_release(&p->events);
    etch_process_map_free(p->processes);
    free(p);
}

bool etch_pt_alive(const struct etch_pt *p)
{
    return etch_process_map_alive(p->processes);
}

/* ---- A snapshot while others go on ---- */

bool etch_pt_has(const struct etch_pt *p, pid_t pid)
{
    return etch_process_map_has(p->processes, pid);
}

/* Two turns: after the second, every record from before the first has come. */
static void settle(struct etch_pt *p)
{
    etch_pt_streams_drain(&p->streams, false);
    etch_pt_streams_drain(&p->streams, false);
    etch_pt_streams_settle(&p->streams, false);
}

/* The process is dying, but has not gone. If memory is short, the trace stays off until the rings are read. */
void etch_pt_hold(struct etch_pt *p)
{
    etch_pt_events_pause(&p->events);
    settle(p);
    if (etch_pt_streams_hold(&p->streams))
        etch_pt_events_resume(&p->events);
}

void etch_pt_snapshot(struct etch_pt *p, const struct etch_sink *sink)
{
    const struct etch_sink standing = p->sink;

    p->sink = *sink;
    etch_process_map_redirect(p->processes, sink);
    write_streams(p);
    etch_process_map_write(p->processes);
    etch_process_map_conclude(p->processes);
    etch_pt_streams_snapshot(&p->streams);
    p->sink = standing;
    etch_process_map_redirect(p->processes, &standing);
    etch_pt_events_resume(&p->events); /* no change if they are on */
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

static int flow_open(void **state, const struct etch_record_options *options, const struct etch_sink *sink,
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

    etch_process_map_leave(p->processes, pid);
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

const struct etch_source etch_source_pt = {
    .name = "pt",
    .id = ETCH__SOURCE__SOURCE_PT,
    .tells_mappings = true,
    .open = flow_open,
    .start = flow_start,
    .poll = flow_poll,
    .drain = flow_drain,
    .freeze = flow_freeze,
    .stop = flow_stop,
    .close = flow_close,
};
