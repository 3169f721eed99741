/* SPDX-License-Identifier: MIT */
/* perf events for Intel PT; see pt_events.h. */
#include "collector/pt_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/pt/sideband.h"

#define SIDE_MOST (512u << 10)
#define SIDE_LEAST (64u << 10)
#define SIDE_SHARE 8u /* of the trace, as long as that lies between the two */
#define RING_LEAST (64u << 10)

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC | flags);
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t side_bytes(size_t ring)
{
    size_t share = ring / SIDE_SHARE;

    return share < SIDE_LEAST ? SIDE_LEAST : share > SIDE_MOST ? SIDE_MOST : share;
}

/* ---- In words ---- */

static int explain_open(struct etch_error *err, int cause)
{
    etch_error_set_errno(err, cause, "cannot trace with Intel PT");
    switch (cause) {
    case EBUSY:
        etch_error_set(err,
                       "cannot trace with Intel PT: something else traces this program, or the whole machine, with it");
        return etch_error_advise(
            err, "end the other tracer (perf record -e intel_pt, a debugger, another etch), or --source none");
    case EACCES:
    case EPERM:
        return etch_error_advise(err, "sysctl kernel.perf_event_paranoid=2 or lower (0 for --cgroup), or give etch "
                                      "CAP_PERFMON, or run as root; in a container allow perf_event_open");
    case EOPNOTSUPP:
        return etch_error_advise(err, "the kernel's PT driver refuses here, as in a guest without it: use the host, or "
                                      "--source vpt; dmesg may say more");
    case EINVAL:
        return etch_error_advise(err,
                                 "the PMU does not take these settings together: leave out --pt; dmesg may say more");
    case ENODEV:
    case ENOENT:
        return etch_error_advise(err, "there is no Intel PT here any more: etch doctor");
    case EMFILE:
        return etch_error_advise(err, "ulimit -n 65536: it takes two descriptors for each thread and CPU");
    case ENOSYS:
        return etch_error_advise(err,
                                 "a seccomp filter or this kernel has no perf_event_open; run outside the container");
    default:
        return -1;
    }
}

static int explain_map(struct etch_error *err, int cause, size_t bytes)
{
    etch_error_set_errno(err, cause, "cannot have rings of %zu KiB on each CPU for Intel PT", bytes >> 10);
    if (cause == EPERM || cause == EAGAIN)
        return etch_error_advise(err,
                                 "a smaller ring (--snapshot 256K, --full=256K); or sysctl "
                                 "kernel.perf_event_mlock_kb=%zu, or ulimit -l unlimited",
                                 (bytes + side_bytes(bytes) + page_size()) >> 10);
    if (cause == ENOMEM)
        return etch_error_advise(err, "a smaller ring (--snapshot 1M, --full=1M), or free some memory");
    if (cause == EOPNOTSUPP || cause == EINVAL)
        return etch_error_advise(err, "this kernel cannot make such a ring; try another size, a power of two");
    return -1;
}

static int explain_filter(struct etch_error *err, int cause, const struct etch_pt_events *e)
{
    etch_error_set_errno(err, cause, "cannot set the address filter '%.200s'", e->request.filter);
    if (cause == EOPNOTSUPP)
        return etch_error_advise(err, "this CPU has %u address ranges, and a control group none; fewer ranges, or none",
                                 e->request.caps->filters);
    if (cause == EINVAL)
        return etch_error_advise(err, "START-END within the program's code, START below END");
    if (cause == ENOENT || cause == EACCES)
        return etch_error_advise(err,
                                 "the kernel finds the file by its path: it must be the same for etch and the program");
    return etch_error_advise(err, "without --filter everything is recorded");
}

/* ---- Opening ---- */

static struct perf_event_attr trace_attr(const struct etch_pt_events *e)
{
    return (struct perf_event_attr){
        .type = e->request.caps->type,
        .size = sizeof(struct perf_event_attr),
        .config = e->request.setting->config,
        .sample_type = etch_side_sample_type,
        .sample_id_all = 1,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .watermark = 1,
        .wakeup_watermark = SIDE_LEAST / 4,
    };
}

static struct perf_event_attr side_attr(const struct etch_pt_events *e)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .size = sizeof(struct perf_event_attr),
        .sample_type = etch_side_sample_type,
        .sample_id_all = 1,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .context_switch = 1,
        .build_id = !e->old_kernel,
        .watermark = 1,
        .wakeup_watermark = SIDE_LEAST / 4,
    };
}

/* A whole machine needs no inheritance, and a kernel refuses what makes no sense to it. */
static int open_pair(struct etch_pt_events *e, pid_t pid, uint32_t cpu, unsigned long flags, int fds[2])
{
    struct perf_event_attr trace = trace_attr(e), side = side_attr(e);
    int cause;

    trace.inherit = side.inherit = !(flags & PERF_FLAG_PID_CGROUP);
    fds[0] = open_event(&trace, pid, (int)cpu, flags);
    if (fds[0] < 0)
        return errno;
    fds[1] = open_event(&side, pid, (int)cpu, flags);
    if (fds[1] < 0 && errno == EINVAL && !e->old_kernel) {
        e->old_kernel = true;
        side.build_id = 0;
        fds[1] = open_event(&side, pid, (int)cpu, flags);
    }
    cause = errno;
    if (fds[1] >= 0 && etch_array_push(&e->traces, fds[0])) {
        if (etch_array_push(&e->sides, fds[1]))
            return 0;
        e->traces.n--;
        cause = ENOMEM;
    }
    close(fds[0]);
    if (fds[1] >= 0)
        close(fds[1]);
    return cause;
}

static void close_from(struct etch_pt_events *e, size_t n)
{
    while (e->traces.n > n)
        close(e->traces.v[--e->traces.n]);
    while (e->sides.n > n)
        close(e->sides.v[--e->sides.n]);
}

/* ---- Rings ---- */

static void unmap(struct etch_pt_cpu *c)
{
    if (c->aux.bytes)
        munmap((void *)(uintptr_t)c->aux.bytes, c->aux.size);
    if (c->side.page)
        munmap(c->side.page, c->side.size + page_size());
    c->aux = (struct etch_aux_ring){0};
    c->side = (struct etch_perf_ring){0};
}

/* Returns 0 or an errno. An AUX area that may only be read is one that the kernel overwrites. */
static int map(struct etch_pt_cpu *c, size_t side, size_t ring, bool full)
{
    size_t page = page_size();
    void *base = mmap(NULL, side + page, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0), *aux;

    if (base == MAP_FAILED)
        return errno;
    c->side = (struct etch_perf_ring){base, (uint8_t *)base + page, side};
    c->side.page->aux_offset = side + page;
    c->side.page->aux_size = ring;
    aux = mmap(NULL, ring, PROT_READ | (full ? PROT_WRITE : 0), MAP_SHARED, c->fd, (off_t)(side + page));
    if (aux == MAP_FAILED)
        return errno;
    c->aux = (struct etch_aux_ring){c->side.page, aux, ring};
    return 0;
}

static void unmap_everywhere(struct etch_pt_events *e)
{
    for (size_t i = 0; i < e->cpus.n; i++)
        unmap(&e->cpus.v[i]);
}

static int map_everywhere(struct etch_pt_events *e, size_t side, size_t ring)
{
    e->locked = 0;
    for (size_t i = 0; i < e->cpus.n; i++) {
        int cause = map(&e->cpus.v[i], side, ring, e->request.full);

        if (cause) {
            unmap_everywhere(e);
            return cause;
        }
    }
    e->locked = e->cpus.n * (side + ring + page_size());
    return 0;
}

/* Rings of one size on all CPUs: the largest that is allowed, where any will do. */
static int make_rings(struct etch_pt_events *e, struct etch_error *err)
{
    size_t ring = e->request.ring;
    int cause = map_everywhere(e, side_bytes(ring), ring);

    while ((cause == EPERM || cause == ENOMEM || cause == EAGAIN) && e->request.smaller && ring > RING_LEAST) {
        ring /= 2;
        cause = map_everywhere(e, side_bytes(ring), ring);
    }
    e->request.ring = cause ? e->request.ring : ring;
    return cause ? explain_map(err, cause, ring) : 0;
}

/* Everything of a CPU goes into its rings. */
static int share_rings(struct etch_pt_events *e, size_t from, struct etch_error *err)
{
    for (size_t i = from; i < e->traces.n; i++) {
        int ring = e->cpus.v[i - from].fd;

        if ((e->traces.v[i] != ring && ioctl(e->traces.v[i], PERF_EVENT_IOC_SET_OUTPUT, ring) < 0) ||
            ioctl(e->sides.v[i], PERF_EVENT_IOC_SET_OUTPUT, ring) < 0)
            return etch_error_set_errno(err, errno, "cannot share a ring between Intel PT events");
        if (e->request.filter && ioctl(e->traces.v[i], PERF_EVENT_IOC_SET_FILTER, e->request.filter) < 0)
            return explain_filter(err, errno, e);
    }
    return 0;
}

/* ---- Adding ---- */

/* The first time finds out which CPUs there are. Returns 0 or an errno. */
static int open_everywhere(struct etch_pt_events *e, pid_t pid, unsigned long flags)
{
    bool first = e->cpus.n == 0;
    long n = first ? sysconf(_SC_NPROCESSORS_CONF) : (long)e->cpus.n;
    int cause = 0;

    for (long i = 0; i < n && !cause; i++) {
        uint32_t cpu = first ? (uint32_t)i : e->cpus.v[i].cpu;
        int fds[2];

        cause = open_pair(e, pid, cpu, flags, fds);
        if (first && (cause == ENODEV || cause == ENXIO))
            cause = 0; /* that CPU is off */
        else if (first && !cause && !etch_array_push(&e->cpus, ((struct etch_pt_cpu){.cpu = cpu, .fd = fds[0]})))
            cause = ENOMEM;
    }
    return cause ? cause : e->cpus.n ? 0 : ENODEV;
}

static int add(struct etch_pt_events *e, pid_t pid, unsigned long flags, bool joining, struct etch_error *err)
{
    size_t before = e->traces.n;
    bool first = e->cpus.n == 0;
    int cause = open_everywhere(e, pid, flags), status = 0;

    if (cause == ESRCH)
        status = 1;
    else if (cause == EBUSY && joining)
        status = 0; /* it was made by a thread that had the events */
    else if (cause)
        status = explain_open(err, cause);
    else if ((first && make_rings(e, err) < 0) || share_rings(e, before, err) < 0)
        status = -1;
    if (cause || status) {
        if (first) {
            unmap_everywhere(e);
            e->cpus.n = 0;
        }
        close_from(e, before);
    }
    return status;
}

int etch_pt_events_add(struct etch_pt_events *e, pid_t tid, bool joining, struct etch_error *err)
{
    return add(e, tid, 0, joining, err);
}

int etch_pt_events_add_cgroup(struct etch_pt_events *e, int cgroup, struct etch_error *err)
{
    return add(e, cgroup, PERF_FLAG_PID_CGROUP, false, err);
}

static void request_each(const int *fds, size_t n, unsigned long request)
{
    for (size_t i = 0; i < n; i++)
        ioctl(fds[i], request, 0);
}

void etch_pt_events_enable(const struct etch_pt_events *e)
{
    request_each(e->sides.v, e->sides.n, PERF_EVENT_IOC_ENABLE);
    request_each(e->traces.v, e->traces.n, PERF_EVENT_IOC_ENABLE);
}

void etch_pt_events_disable(const struct etch_pt_events *e)
{
    request_each(e->traces.v, e->traces.n, PERF_EVENT_IOC_DISABLE);
    request_each(e->sides.v, e->sides.n, PERF_EVENT_IOC_DISABLE);
}

void etch_pt_events_pause(const struct etch_pt_events *e)
{
    request_each(e->traces.v, e->traces.n, PERF_EVENT_IOC_DISABLE);
}

void etch_pt_events_resume(const struct etch_pt_events *e)
{
    request_each(e->traces.v, e->traces.n, PERF_EVENT_IOC_ENABLE);
}

void etch_pt_events_release(struct etch_pt_events *e)
{
    for (size_t i = 0; i < e->cpus.n; i++)
        unmap(&e->cpus.v[i]);
    close_from(e, 0);
    etch_array_free(&e->cpus);
    etch_array_free(&e->traces);
    etch_array_free(&e->sides);
    e->locked = 0;
}

int etch_pt_events_try(const struct etch_pt_caps *caps, size_t *ring, struct etch_error *err)
{
    struct etch_pt_setting setting;
    struct etch_pt_events e = {.request = {.caps = caps, .setting = &setting, .ring = ETCH_PT_RING, .smaller = true}};
    int status;

    if (etch_pt_setting_choose(&setting, caps, NULL, ETCH_PT_RING, err) < 0)
        return -1;
    status = etch_pt_events_add(&e, (pid_t)syscall(SYS_gettid), false, err);
    *ring = e.request.ring;
    etch_pt_events_release(&e);
    return status;
}
