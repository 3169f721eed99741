/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Rings and their filling; see thread.h. */
#include "collector/vpt/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURN_NS 20000000u
#define STOPPED_TURNS 12u  /* 250 ms for an etch that is stopped */
#define STARVED_TURNS 250u /* 5 s for one that gets no CPU, or whose disk takes nothing */
#define TSC_PERIOD 128u    /* bytes of trace between two times */

struct etch_vpt_control *etch_vpt_control;

static char folder[256];

int etch_vpt_control_open(const char *name)
{
    char path[sizeof(folder) + 16];
    void *map;
    int fd;

    if (strlen(name) >= sizeof(folder))
        return -ENAMETOOLONG;
    snprintf(folder, sizeof(folder), "%s", name);
    snprintf(path, sizeof(path), "%s/" VPT_CONTROL, folder);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    map = mmap(NULL, sizeof(*etch_vpt_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return -errno;
    etch_vpt_control = map;
    return etch_vpt_control->magic == VPT_MAGIC ? 0 : -EPROTO;
}

static int futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return (int)syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static void wake_collector(void)
{
    atomic_fetch_add_explicit(&etch_vpt_control->wake, 1, memory_order_relaxed);
    futex(&etch_vpt_control->wake, FUTEX_WAKE, 1, NULL);
}

/* By the lock that etch holds on the folder, in whatever PID namespace it is; by its pid where that cannot be seen. */
static bool collector_lives(void)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool lives;

    if (fd < 0)
        return kill(etch_vpt_control->collector, 0) == 0 || errno == EPERM;
    lives = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd);
    return lives;
}

static bool collector_listens(void)
{
    return !atomic_load_explicit(&etch_vpt_control->closed, memory_order_relaxed) && collector_lives();
}

/* Somebody stopped it, as SIGSTOP does. */
static bool collector_stands(void)
{
    char path[64], text[512] = "";
    const char *behind;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)etch_vpt_control->collector);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    close(fd);
    behind = strrchr(text, ')');
    return behind && (behind[1] == ' ' && behind[2] == 'T');
}

/* The program does not wait for an etch that takes nothing out. */
static bool has_starved(unsigned turns)
{
    if (turns < STOPPED_TURNS || (turns < STARVED_TURNS && !collector_stands()))
        return false;
    atomic_fetch_add(&etch_vpt_control->starved, 1);
    return true;
}

/* Waits until [*tail, head + want) fits into the ring. False where etch will never make room. */
static bool wait_for_room(struct etch_vpt_self *t, _Atomic uint64_t *tail, uint64_t head, uint64_t want, uint64_t size)
{
    const struct timespec turn = {.tv_nsec = TURN_NS};

    uint32_t moved_before = 0;

    for (unsigned turns = 0;; turns++) {
        uint32_t moved = atomic_load_explicit(&t->shared->tail_moved, memory_order_acquire);

        if (moved != moved_before)
            turns = 0;
        moved_before = moved;

        /* Acquire: pairs with etch's release of the tail; it has read what we are about to overwrite. */
        if (head + want - atomic_load_explicit(tail, memory_order_acquire) <= size)
            return true;
        if (t->starved || !collector_listens())
            return false;
        t->starved = t->writer.failed = has_starved(turns);
        wake_collector();
        futex(&t->shared->tail_moved, FUTEX_WAIT, moved, &turn);
    }
}

/* The ring once more behind itself. */
static bool map_ring(uint8_t *at, int fd, uint64_t offset, uint64_t size)
{
    for (int i = 0; i < 2; i++)
        if (mmap(at + (uint64_t)i * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) ==
            MAP_FAILED)
            return false;
    return true;
}

/* Header, flow twice, events twice, in one stretch of addresses. */
static uint8_t *map_all(int fd, size_t mapped)
{
    const struct etch_vpt_control *c = etch_vpt_control;
    uint8_t *base = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return NULL;
    if (mmap(base, VPT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        !map_ring(base + VPT_PAGE, fd, VPT_PAGE, c->flow_size) ||
        !map_ring(base + VPT_PAGE + 2 * c->flow_size, fd, VPT_PAGE + c->flow_size, c->event_size)) {
        munmap(base, mapped);
        return NULL;
    }
    return base;
}

static bool is_beyond(uint64_t size)
{
    if (atomic_fetch_add(&etch_vpt_control->rings, size) + size <= etch_vpt_control->max_rings ||
        !etch_vpt_control->max_rings)
        return false;
    atomic_fetch_sub(&etch_vpt_control->rings, size);
    atomic_fetch_add(&etch_vpt_control->limited, 1);
    return true;
}

/* The memory is taken now: a full /dev/shm must be an answer, not a SIGBUS in the target. */
static uint8_t *make_file(size_t mapped)
{
    uint64_t size = VPT_PAGE + etch_vpt_control->flow_size + etch_vpt_control->event_size;
    char path[sizeof(folder) + 32];
    uint8_t *base = NULL;
    uint32_t number;
    int fd;

    if (is_beyond(size))
        return NULL;
    number = atomic_fetch_add(&etch_vpt_control->threads, 1);
    snprintf(path, sizeof(path), "%s/%u.thread", folder, number);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    if (posix_fallocate(fd, 0, (off_t)size) == 0)
        base = map_all(fd, mapped);
    if (!base)
        unlink(path);
    close(fd);
    return base;
}

static void set_periods(struct etch_vpt_self *t)
{
    bool snapshot = etch_vpt_control->flags & VPT_SNAPSHOT;

    t->next_psb = t->writer.head + etch_vpt_control->psb_period;
    t->next_tsc = t->writer.head + TSC_PERIOD;
    t->next_wake = snapshot ? UINT64_MAX : etch_vpt_control->flow_size / 4;
    t->limit = snapshot ? UINT64_MAX : etch_vpt_control->flow_size - 2 * VPT_RESERVE;
    t->attention = t->next_tsc;
}

struct etch_vpt_self *etch_vpt_self_begin(uint32_t parent_pid, uint32_t parent_tid)
{
    size_t mapped = VPT_PAGE + 2 * etch_vpt_control->flow_size + 2 * etch_vpt_control->event_size;
    struct etch_vpt_self *t = calloc(1, sizeof(*t));
    uint8_t *base = t ? make_file(mapped) : NULL;

    if (!base || etch_vpt_writer_init(&t->writer, (struct etch_vpt_thread *)base, base + VPT_PAGE,
                                      etch_vpt_control->flow_size) < 0) {
        atomic_fetch_add(&etch_vpt_control->refused, 1);
        free(t);
        return NULL;
    }
    t->shared = (struct etch_vpt_thread *)base;
    t->flow = base + VPT_PAGE;
    t->events = t->flow + 2 * etch_vpt_control->flow_size;
    t->mapped = mapped;
    t->first = true;
    t->shared->pid = (uint32_t)getpid();
    t->shared->tid = (uint32_t)syscall(SYS_gettid);
    t->shared->parent_pid = parent_pid;
    t->shared->parent_tid = parent_tid;
    t->shared->start_tsc = __rdtsc();
    t->shared->states[0].tnt = t->shared->states[1].tnt = 1;
    prctl(PR_GET_NAME, t->shared->name);
    set_periods(t);
    if (etch_vpt_control->flags & VPT_TRUTH)
        etch_vpt_truth_open(&t->truth, etch_vpt_control->truth, t->shared->pid, t->shared->tid);
    /* Release: pairs with etch's acquire; the header is whole. */
    atomic_store_explicit(&t->shared->magic, VPT_MAGIC, memory_order_release);
    return t;
}

void etch_vpt_self_abandon(struct etch_vpt_self *t)
{
    munmap(t->shared, t->mapped);
    etch_vpt_writer_release(&t->writer);
    etch_vpt_truth_abandon(&t->truth);
    free(t);
}

void etch_vpt_self_end(struct etch_vpt_self *t)
{
    prctl(PR_GET_NAME, t->shared->name);
    etch_vpt_truth_close(&t->truth);
    atomic_store_explicit(&t->shared->end_tsc, __rdtsc(), memory_order_relaxed);
    /* Release: pairs with etch's acquire; all that was written is there. */
    atomic_store_explicit(&t->shared->ended, 1, memory_order_release);
    wake_collector();
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void etch_vpt_self_attend(struct etch_vpt_self *t, uint64_t at)
{
    struct etch_vpt_writer *w = &t->writer;

    if (w->head >= t->next_psb) {
        etch_vpt_put_psb(w, etch_vpt_now(), at);
        t->next_psb = w->head + etch_vpt_control->psb_period;
        t->next_tsc = w->head + TSC_PERIOD;
        etch_vpt_commit(w, at);
    } else if (w->head >= t->next_tsc) {
        etch_vpt_put_tsc(w, etch_vpt_now());
        t->next_tsc = w->head + TSC_PERIOD;
        etch_vpt_commit(w, at);
    }
    if (w->head >= t->next_wake) {
        wake_collector();
        t->next_wake = w->head + etch_vpt_control->flow_size / 4;
    }
    if (w->head >= t->limit) {
        uint64_t size = etch_vpt_control->flow_size;

        if (!wait_for_room(t, &t->shared->tail, w->head, 2 * VPT_RESERVE, size))
            w->failed = true;
        else
            t->limit = atomic_load_explicit(&t->shared->tail, memory_order_relaxed) + size - 2 * VPT_RESERVE;
    }
    t->attention = w->failed ? UINT64_MAX : least(least(t->next_psb, t->next_tsc), least(t->next_wake, t->limit));
}

void *etch_vpt_event_reserve(struct etch_vpt_self *t, uint32_t size, enum etch_vpt_event_type type, uint64_t tsc)
{
    uint64_t capacity = etch_vpt_control->event_size;
    uint32_t rounded = (size + 7u) & ~7u;
    struct etch_vpt_event *event = (struct etch_vpt_event *)(t->events + (t->event_head & (capacity - 1)));

    if (rounded > capacity / 2 || !wait_for_room(t, &t->shared->event_tail, t->event_head, rounded, capacity))
        return NULL;
    memset(event, 0, size);
    event->size = rounded;
    event->type = type;
    event->tsc = tsc;
    return event;
}

void etch_vpt_event_publish(struct etch_vpt_self *t)
{
    const struct etch_vpt_event *event =
        (const struct etch_vpt_event *)(t->events + (t->event_head & (etch_vpt_control->event_size - 1)));

    t->event_head += event->size;
    /* Release: pairs with etch's acquire; the event is whole. */
    atomic_store_explicit(&t->shared->event_head, t->event_head, memory_order_release);
    if (t->event_head - atomic_load_explicit(&t->shared->event_tail, memory_order_relaxed) >
        etch_vpt_control->event_size / 2)
        wake_collector();
}

void etch_vpt_event_note(struct etch_vpt_self *t, enum etch_vpt_event_type type, uint64_t tsc, uint64_t number,
                         uint64_t address, uint64_t value, uint32_t flags, const char *text)
{
    size_t length = text ? strnlen(text, VPT_MAX_PATH) : 0;
    struct etch_vpt_note *note = etch_vpt_event_reserve(t, (uint32_t)(sizeof(*note) + length), type, tsc);

    if (!note)
        return;
    note->number = number;
    note->address = address;
    note->value = value;
    note->flags = flags;
    note->text_size = (uint32_t)length;
    if (length)
        memcpy(note + 1, text, length);
    etch_vpt_event_publish(t);
}
