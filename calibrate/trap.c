/* SPDX-License-Identifier: MIT */
/* A watchpoint on ourselves; see trap.h. */
#include "calibrate/trap.h"

#include "calibrate/stamp.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_PAGES 8

struct trap {
    int fd;
    size_t size; /* of the mapping */
    struct perf_event_mmap_page *head;
    const unsigned char *ring;
    size_t ring_size;
    _Alignas(8) volatile uint64_t watched;
};

static int trap_open(struct trap *t, int clock, struct etch_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct perf_event_attr attr = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof(attr),
        .bp_type = HW_BREAKPOINT_W,
        .bp_addr = (uint64_t)(uintptr_t)&t->watched,
        .bp_len = HW_BREAKPOINT_LEN_8,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TIME,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .disabled = 1,
        .use_clockid = clock != ETCH_TRAP_SCHEDULER_CLOCK,
        .clockid = clock != ETCH_TRAP_SCHEDULER_CLOCK ? clock : 0,
    };

    t->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (t->fd < 0) {
        etch_error_set_errno(err, errno, "cannot watch a variable of our own");
        return etch_error_advise(
            err, "free a watchpoint (a debugger may hold them), or sysctl kernel.perf_event_paranoid=2");
    }
    t->ring_size = RING_PAGES * page;
    t->size = t->ring_size + page;
    t->head = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (t->head == MAP_FAILED) {
        etch_error_set_errno(err, errno, "cannot map the ring of a watchpoint");
        close(t->fd);
        return -1;
    }
    t->ring = (const unsigned char *)t->head + page;
    return 0;
}

static void trap_close(struct trap *t)
{
    munmap(t->head, t->size);
    close(t->fd);
}

static void ring_copy(const struct trap *t, uint64_t at, void *to, size_t size)
{
    unsigned char *bytes = to;

    for (size_t i = 0; i < size; i++)
        bytes[i] = t->ring[(at + i) % t->ring_size];
}

/* The time of the one sample in the ring; false where there is none, or more than that. */
static bool read_time(struct trap *t, uint64_t *ns)
{
    uint64_t head =
        __atomic_load_n(&t->head->data_head, __ATOMIC_ACQUIRE); /* pairs with the kernel's store after the data */
    uint64_t at = t->head->data_tail; /* NOLINT(clang-analyzer-core.NullDereference): mmap gives MAP_FAILED, not NULL */
    unsigned samples = 0;

    while (head - at >= sizeof(struct perf_event_header)) {
        struct perf_event_header header;

        ring_copy(t, at, &header, sizeof(header));
        if (header.size < sizeof(header))
            break;
        if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof(header) + 8) {
            ring_copy(t, at + sizeof(header), ns, 8);
            samples++;
        } else {
            samples = 2; /* throttled or lost: the sample is no evidence */
        }
        at += header.size;
    }
    __atomic_store_n(&t->head->data_tail, head, __ATOMIC_RELEASE);
    return samples == 1;
}

/* A stray trap costs a sample and nothing else. */
static void ignore_trap(int number)
{
    (void)number;
}

void etch_trap_guard_begin(struct etch_trap_guard *guard)
{
    struct sigaction ignore = {.sa_handler = ignore_trap};
    sigset_t trap;

    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    sigaction(SIGTRAP, &ignore, &guard->action);
    pthread_sigmask(SIG_UNBLOCK, &trap, &guard->mask); /* a forced SIGTRAP ends a thread that blocks SIGTRAP */
}

void etch_trap_guard_end(const struct etch_trap_guard *guard)
{
    pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
    sigaction(SIGTRAP, &guard->action, NULL);
}

int64_t etch_trap_take(struct etch_clock_pair *pairs, size_t n, int clock, struct etch_error *err)
{
    struct etch_trap_guard guard;
    struct trap t = {.fd = -1};
    int64_t kept = 0;

    if (trap_open(&t, clock, err) < 0)
        return -1;
    etch_trap_guard_begin(&guard);
    ioctl(t.fd, PERF_EVENT_IOC_ENABLE, 0);
    for (size_t i = 0; i < n; i++) {
        struct etch_clock_pair pair;
        uint32_t first, last;

        pair.before = etch_stamp(&first);
        t.watched = i;
        pair.after = etch_stamp(&last);
        if (read_time(&t, &pair.ns) && first == last)
            pairs[kept++] = pair;
    }
    trap_close(&t);
    etch_trap_guard_end(&guard);
    return kept;
}

static int ascending(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x;
    uint64_t b = *(const uint64_t *)y;

    return a < b ? -1 : a > b;
}

int etch_trap_latency(const struct etch_clock_pair *pairs, size_t n, const struct etch_clock_fit *fit,
                      struct etch_trap_latency *latency, struct etch_error *err)
{
    uint64_t *after = malloc((n + 1) * sizeof(*after));

    memset(latency, 0, sizeof(*latency));
    if (!after || n == 0) {
        free(after);
        return after ? etch_error_set(err, "no watched access was stamped") : etch_error_no_memory(err);
    }
    latency->lo = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t at = (int64_t)(etch_clock_convert(fit, pairs[i].ns) - pairs[i].before);
        int64_t width = (int64_t)(pairs[i].after - pairs[i].before);
        int64_t error = (int64_t)fit->error;
        uint64_t least = at > error ? (uint64_t)(at - error) : 0;

        latency->outside += at + error < 0 || at - error > width;
        after[i] = at > 0 ? (uint64_t)at : 0;
        latency->lo = least < latency->lo ? least : latency->lo;
        latency->hi = at + error > 0 && (uint64_t)(at + error) > latency->hi ? (uint64_t)(at + error) : latency->hi;
    }
    qsort(after, n, sizeof(*after), ascending);
    latency->median = after[n / 2];
    latency->samples = n;
    free(after);
    return 0;
}
