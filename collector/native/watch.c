/* SPDX-License-Identifier: MIT */
/* Hardware watchpoints through perf; see watch.h. */
#include "collector/watch.h"
#include "calibrate/trap.h"

#include "base/array.h"
#include "base/time.h"
#include "collector/perf_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_WATCHES 64
#define WINDOW_NS 1000000000u /* the budget is counted by the second, so that a burst is seen whole */
#define COST_HITS 200

struct event {
    int fd;
    uint64_t id;
    uint32_t watch, cpu;
    pid_t tid; /* that it was opened on */
    bool site;
};

struct ring {
    int fd; /* of the event that it was mapped on; -1: none yet */
    struct etch_perf_ring memory;
};

struct counting {
    uint64_t hits; /* in this window */
    bool cut;
    uint64_t cut_ns;
};

/* A hit out of a ring, whose bytes are the kernel's again. */
struct taken {
    struct etch_hit hit;
    size_t stack; /* index into etch_watches.stacks */
};

struct etch_watches {
    size_t ring_bytes;
    size_t cpus;
    struct ring *rings;
    ETCH_ARRAY(struct event) events;
    ETCH_ARRAY(struct taken) hits;
    ETCH_ARRAY(uint8_t) stacks;
    uint64_t own_start, own_end;
    bool kernel;
    uint64_t hit_ns;
    uint64_t window_hits; /* allowed; 0: no limit */
    uint64_t window_ns;   /* when the present one began */
    struct counting counting[MAX_WATCHES];
};

static int open_event(struct perf_event_attr *attr, pid_t tid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int explain(struct etch_error *err, int cause, const char *what)
{
    etch_error_set_errno(err, cause, "cannot set a %s", what);
    switch (cause) {
    case EACCES:
    case EPERM:
        return etch_error_advise(err,
                                 "sysctl kernel.perf_event_paranoid=2 or lower, or give etch CAP_PERFMON, or run as "
                                 "root; in a container allow perf_event_open");
    case ENOSYS:
        return etch_error_advise(err,
                                 "a seccomp filter or this kernel has no perf_event_open; run outside the container");
    case ENOSPC:
        return etch_error_advise(err,
                                 "the debug registers are taken: end the debugger or perf session on this program, "
                                 "or watch less");
    case EMFILE:
        return etch_error_advise(err, "ulimit -n 65536");
    case EOPNOTSUPP:
    case ENOENT:
        return etch_error_advise(err, "this machine has no hardware breakpoints; --source vpt emulates watches");
    default:
        return -1;
    }
}

/* ---- The cost of a hit ---- */

static _Alignas(64) volatile uint64_t own_word;

static uint64_t measure_hit(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof(attr),
        .bp_type = HW_BREAKPOINT_W,
        .bp_addr = (uintptr_t)&own_word,
        .bp_len = HW_BREAKPOINT_LEN_8,
        .sample_period = 1,
        .sample_type = etch_hits_sample_type,
        .sample_regs_user = etch_hits_registers,
        .sample_stack_user = ETCH_HIT_STACK,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    int fd = open_event(&attr, 0, -1);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = page * 17;
    void *ring;
    struct etch_trap_guard guard;
    uint64_t start, spent = 0;

    if (fd < 0)
        return 0;
    etch_trap_guard_begin(&guard);
    ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    start = etch_time_ns();
    for (unsigned i = 0; i < COST_HITS; i++)
        own_word = i;
    spent = (etch_time_ns() - start) / COST_HITS;
    if (ring != MAP_FAILED)
        munmap(ring, size);
    close(fd);
    etch_trap_guard_end(&guard);
    return spent;
}

/* ---- Making and ending ---- */

int etch_watches_new(struct etch_watches **watches, size_t ring_bytes, const struct etch_watch_budget *budget,
                     struct etch_error *err)
{
    struct etch_watches *w = calloc(1, sizeof(*w));
    uint64_t per_s = budget->hits_per_s;
    long cpus = sysconf(_SC_NPROCESSORS_CONF);

    *watches = NULL;
    if (!w)
        return etch_error_no_memory(err);
    w->cpus = cpus > 0 ? (size_t)cpus : 1;
    w->ring_bytes = ring_bytes;
    w->kernel = true; /* until refused */
    w->rings = calloc(w->cpus, sizeof(*w->rings));
    if (!w->rings) {
        etch_watches_free(w);
        return etch_error_no_memory(err);
    }
    for (size_t i = 0; i < w->cpus; i++)
        w->rings[i].fd = -1;
    w->hit_ns = measure_hit();
    if (budget->share > 0 && w->hit_ns) {
        uint64_t by_share = (uint64_t)(budget->share * 1e9 / (double)w->hit_ns) + 1;

        per_s = !per_s || by_share < per_s ? by_share : per_s;
    }
    w->window_hits = per_s ? per_s : 0;
    w->window_ns = etch_time_ns();
    *watches = w;
    return 0;
}

static void unmap(struct etch_watches *w, struct ring *ring)
{
    if (ring->memory.page)
        munmap(ring->memory.page, ring->memory.size + (size_t)sysconf(_SC_PAGESIZE));
    (void)w;
    *ring = (struct ring){.fd = -1};
}

void etch_watches_disarm_all(struct etch_watches *watches)
{
    for (size_t i = 0; i < watches->events.n; i++)
        close(watches->events.v[i].fd);
    watches->events.n = 0;
    for (size_t i = 0; i < watches->cpus; i++)
        unmap(watches, &watches->rings[i]);
}

void etch_watches_free(struct etch_watches *watches)
{
    if (!watches)
        return;
    if (watches->rings)
        etch_watches_disarm_all(watches);
    free(watches->rings);
    etch_array_free(&watches->events);
    etch_array_free(&watches->hits);
    etch_array_free(&watches->stacks);
    free(watches);
}

void etch_watches_set_own(struct etch_watches *watches, uint64_t start, uint64_t end)
{
    watches->own_start = start;
    watches->own_end = end;
}

/* ---- Arming ---- */

/* The CPU's ring, mapped on the event if it is the first there. The ring is smaller if memory may not be locked. */
static int give_ring(struct etch_watches *w, const struct event *event)
{
    struct ring *ring = &w->rings[event->cpu];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *map = MAP_FAILED;

    if (ring->fd >= 0)
        return ioctl(event->fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd);
    for (size_t size = w->ring_bytes; size >= page && map == MAP_FAILED; size /= 2) {
        map = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_SHARED, event->fd, 0);
        if (map == MAP_FAILED)
            continue;
        ring->fd = event->fd;
        ring->memory = (struct etch_perf_ring){map, (uint8_t *)map + page, size};
    }
    return map == MAP_FAILED ? -1 : 0;
}

static int open_on_cpu(struct etch_watches *w, struct perf_event_attr *attr, struct event event, struct etch_error *err)
{
    const char *what = event.site ? "breakpoint" : "watchpoint";

    attr->exclude_kernel = !w->kernel || event.site;
    event.fd = open_event(attr, event.tid, (int)event.cpu);
    if (event.fd < 0 && (errno == EACCES || errno == EPERM) && w->kernel && !event.site) {
        w->kernel = false;
        attr->exclude_kernel = 1;
        event.fd = open_event(attr, event.tid, (int)event.cpu);
    }
    if (event.fd < 0 && errno == ESRCH)
        return 1;
    if (event.fd < 0)
        return errno == ENODEV || errno == ENXIO ? 0 : explain(err, errno, what); /* that CPU is off */
    if (ioctl(event.fd, PERF_EVENT_IOC_ID, &event.id) < 0 || (!event.site && give_ring(w, &event) < 0)) {
        int cause = errno;

        close(event.fd);
        etch_error_set_errno(err, cause, "cannot map a ring for a %s", what);
        return etch_error_advise(err, "ulimit -l unlimited, or sysctl kernel.perf_event_mlock_kb=65536");
    }
    if (etch_array_push(&w->events, event))
        return 0;
    close(event.fd);
    return etch_error_no_memory(err);
}

static int open_everywhere(struct etch_watches *w, struct perf_event_attr *attr, struct event event,
                           struct etch_error *err)
{
    size_t before = w->events.n;

    for (size_t cpu = 0; cpu < w->cpus; cpu++) {
        int status;

        event.cpu = (uint32_t)cpu;
        status = open_on_cpu(w, attr, event, err);
        if (status == 0)
            continue;
        while (w->events.n > before) {
            struct event *last = &w->events.v[--w->events.n];

            if (w->rings[last->cpu].fd == last->fd)
                unmap(w, &w->rings[last->cpu]);
            close(last->fd);
        }
        return status;
    }
    for (size_t i = before; i < w->events.n; i++)
        ioctl(w->events.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
    return 0;
}

int etch_watches_arm(struct etch_watches *watches, uint32_t watch, pid_t tid, uint64_t address, uint32_t size,
                     bool reads, struct etch_error *err)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof(attr),
        .bp_type = reads ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W,
        .bp_addr = address,
        .bp_len = size,
        .sample_period = 1,
        .sample_type = etch_hits_sample_type,
        .sample_regs_user = etch_hits_registers,
        .sample_stack_user = ETCH_HIT_STACK,
        .disabled = 1,
        .inherit = 1,
        .inherit_thread = 1, /* not into children by fork */
        .remove_on_exec = 1,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC_RAW,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(watches->ring_bytes / 64),
    };
    struct event event = {.watch = watch, .tid = tid};

    if (watch >= MAX_WATCHES || !size)
        return etch_error_set(err, "too many watches");
    return open_everywhere(watches, &attr, event, err);
}

int etch_watches_arm_site(struct etch_watches *watches, uint32_t watch, pid_t tid, uint64_t address,
                          struct etch_error *err)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof(attr),
        .bp_type = HW_BREAKPOINT_X,
        .bp_addr = address,
        .bp_len = sizeof(long),
        .sample_period = 1,
        .disabled = 1,
        .inherit = 1,
        .inherit_thread = 1,
        .remove_on_exec = 1,
        .sigtrap = 1,
        .sig_data = watch,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    struct event event = {.watch = watch, .tid = tid, .site = true};

    return open_everywhere(watches, &attr, event, err);
}

void etch_watches_disarm_site(struct etch_watches *watches, uint32_t watch)
{
    size_t kept = 0;

    for (size_t i = 0; i < watches->events.n; i++) {
        struct event *event = &watches->events.v[i];

        if (event->site && event->watch == watch)
            close(event->fd);
        else
            watches->events.v[kept++] = *event;
    }
    watches->events.n = kept;
}

/* ---- Draining ---- */

static const struct event *event_by_id(const struct etch_watches *w, uint64_t id)
{
    for (size_t i = 0; i < w->events.n; i++)
        if (w->events.v[i].id == id)
            return &w->events.v[i];
    return NULL;
}

struct draining {
    struct etch_watches *watches;
    const struct etch_watch_sink *sink;
};

static bool take_hit(struct etch_watches *w, const struct etch_hit *hit)
{
    struct taken taken = {*hit, w->stacks.n};

    if ((hit->ip >= w->own_start && hit->ip < w->own_end) ||
        !etch_array_reserve(&w->stacks, w->stacks.n + hit->stack_size))
        taken.hit.stack_size = 0;
    if (!etch_array_push(&w->hits, taken))
        return false;
    if (taken.hit.stack_size)
        memcpy(w->stacks.v + w->stacks.n, hit->stack, hit->stack_size);
    w->stacks.n += taken.hit.stack_size;
    return true;
}

static void take_record(void *context, const uint8_t *record, size_t size)
{
    const struct draining *d = context;
    struct etch_hit hit;
    uint64_t lost = 0;
    size_t used;

    switch (etch_hits_next(record, size, &used, &hit, &lost)) {
    case ETCH_HITS_LOST: {
        const struct event *event = event_by_id(d->watches, hit.event);

        d->sink->lost(d->sink->context, event ? event->watch : 0, lost);
        break;
    }
    case ETCH_HITS_HIT:
        if (!take_hit(d->watches, &hit))
            d->sink->lost(d->sink->context, 0, 1);
        break;
    default:
        break;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct taken *x = a, *y = b;

    return x->hit.perf_ns < y->hit.perf_ns ? -1 : x->hit.perf_ns > y->hit.perf_ns;
}

static void switch_watch(struct etch_watches *w, uint32_t watch, unsigned long request)
{
    for (size_t i = 0; i < w->events.n; i++)
        if (w->events.v[i].watch == watch && !w->events.v[i].site)
            ioctl(w->events.v[i].fd, request, 0);
}

static void keep_budget(struct etch_watches *w, const struct etch_watch_sink *sink)
{
    uint64_t now = etch_time_ns();
    bool new_window = now - w->window_ns >= WINDOW_NS;

    if (!w->window_hits)
        return;
    for (uint32_t i = 0; i < MAX_WATCHES; i++) {
        struct counting *c = &w->counting[i];

        if (!c->cut && c->hits > w->window_hits) {
            switch_watch(w, i, PERF_EVENT_IOC_DISABLE);
            c->cut = true;
            c->cut_ns = now;
            sink->cut(sink->context, i);
        } else if (c->cut && new_window && now - c->cut_ns >= WINDOW_NS) {
            switch_watch(w, i, PERF_EVENT_IOC_ENABLE);
            c->cut = false;
            sink->resumed(sink->context, i, now - c->cut_ns);
        }
        if (new_window)
            c->hits = 0;
    }
    if (new_window)
        w->window_ns = now;
}

/* A thread that was made while its maker was being armed may have the watch twice: an inherited event and its own
 * event. Only its own event counts. */
static bool is_double(const struct etch_watches *w, const struct event *event, uint32_t tid)
{
    if (event->tid == (pid_t)tid)
        return false;
    for (size_t i = 0; i < w->events.n; i++)
        if (w->events.v[i].tid == (pid_t)tid && w->events.v[i].watch == event->watch && !w->events.v[i].site)
            return true;
    return false;
}

void etch_watches_drain(struct etch_watches *watches, const struct etch_watch_sink *sink)
{
    struct draining draining = {watches, sink};

    watches->hits.n = watches->stacks.n = 0;
    for (size_t i = 0; i < watches->cpus; i++)
        if (watches->rings[i].memory.page)
            etch_perf_ring_drain(&watches->rings[i].memory, take_record, &draining);
    if (watches->hits.n > 1)
        qsort(watches->hits.v, watches->hits.n, sizeof(*watches->hits.v), by_time);
    for (size_t i = 0; i < watches->hits.n; i++) {
        struct etch_hit *hit = &watches->hits.v[i].hit;
        const struct event *event = event_by_id(watches, hit->event);

        if (!event || is_double(watches, event, hit->tid))
            continue;
        hit->stack = hit->stack_size ? watches->stacks.v + watches->hits.v[i].stack : NULL;
        watches->counting[event->watch].hits++;
        sink->hit(sink->context, event->watch, hit);
    }
    keep_budget(watches, sink);
}

uint64_t etch_watches_count(const struct etch_watches *watches, uint32_t watch)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < watches->events.n; i++) {
        uint64_t count;

        if (watches->events.v[i].watch == watch && !watches->events.v[i].site &&
            read(watches->events.v[i].fd, &count, sizeof(count)) == sizeof(count))
            sum += count;
    }
    return sum;
}

size_t etch_watches_poll(const struct etch_watches *watches, struct pollfd *fds, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < watches->cpus && n < max; i++)
        if (watches->rings[i].fd >= 0)
            fds[n++] = (struct pollfd){.fd = watches->rings[i].fd, .events = POLLIN};
    return n;
}

uint64_t etch_watches_hit_ns(const struct etch_watches *watches)
{
    return watches->hit_ns;
}

bool etch_watches_see_kernel(const struct etch_watches *watches)
{
    return watches->kernel;
}
