/* SPDX-License-Identifier: MIT */
/* One thread of the program: its ring of control flow, from the first look to the last bytes. */
#include "base/path.h"
#include "collector/session/process.h"
#include "collector/vpt/tail.h"
#include "collector/vpt/vpt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t etch_vpt_slot_head(const struct etch_vpt_slot *s)
{
    uint64_t a = atomic_load_explicit(&s->shared->states[0].head, memory_order_acquire);
    uint64_t b = atomic_load_explicit(&s->shared->states[1].head, memory_order_acquire);

    return a > b ? a : b; /* either was published after its packets */
}

static void write_ring(const struct vpt *v, const struct etch_vpt_slot *s, uint32_t stream, uint64_t from, uint64_t to)
{
    uint64_t size = v->flow_size;

    while (from < to) {
        uint64_t place = from & (size - 1);
        uint64_t n = to - from < size - place ? to - from : size - place;

        v->sink.bytes(v->sink.context, stream, from, s->flow + place, n, false);
        from += n;
    }
}

void etch_vpt_slot_wake(struct etch_vpt_slot *s)
{
    atomic_fetch_add_explicit(&s->shared->tail_moved, 1, memory_order_release);
    syscall(SYS_futex, &s->shared->tail_moved, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void etch_vpt_slot_take_flow(struct vpt *v, struct etch_vpt_slot *s, uint64_t head, uint64_t at_least)
{

    if (v->options->snapshot || head <= s->taken || head - s->taken < at_least)
        return;
    if (head - s->taken > v->flow_size) {
        s->damaged = true;
        return;
    }
    write_ring(v, s, (uint32_t)(s - v->slots.v), s->taken, head);
    s->taken = head;
    atomic_store_explicit(&s->shared->tail, head, memory_order_release);
    etch_vpt_slot_wake(s);
}

/* The newest bytes. The plugin may have been killed while it wrote over the oldest: those are left out. */
static void take_snapshot(const struct vpt *v, struct etch_vpt_slot *s, uint64_t head)
{
    uint64_t keep = v->flow_size - 1024;
    uint32_t stream = (uint32_t)(s - v->slots.v);

    if (head > keep) {
        Etch__Loss loss = ETCH__LOSS__INIT;

        s->taken = head - keep;
        loss.cause = ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED;
        loss.stream = stream;
        loss.bytes = s->taken;
        loss.tid = s->tid;
        loss.detail = (char *)(uintptr_t)"older than the snapshot";
        v->sink.lost(v->sink.context, &loss);
    }
    write_ring(v, s, stream, s->taken, head);
    s->taken = head;
}

static bool map_slot(struct vpt *v, struct etch_vpt_slot *s, size_t number)
{
    char name[32];
    struct etch_vpt_thread *shared;
    int fd;

    snprintf(name, sizeof(name), "%zu.thread", number);
    fd = openat(v->folder.fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    s->mapping = etch_guarded_map(fd, VPT_PAGE + v->flow_size + VPT_EVENT_RING, !v->known);
    close(fd);
    if (!s->mapping)
        return false;
    shared = etch_guarded_at(s->mapping);
    /* Acquire: pairs with the plugin's release; the header is whole. */
    if (atomic_load_explicit(&shared->magic, memory_order_acquire) != VPT_MAGIC) {
        etch_guarded_unmap(s->mapping);
        s->mapping = NULL;
        return false;
    }
    s->shared = shared;
    s->pid = shared->pid;
    s->tid = shared->tid;
    if (v->known) {
        s->event_taken = atomic_load(&shared->event_tail);
        s->taken = etch_vpt_known_end(v->known, (uint32_t)number, atomic_load(&shared->tail));
    }
    s->flow = (const uint8_t *)shared + VPT_PAGE;
    s->events = s->flow + v->flow_size;
    return true;
}

static void count_process(struct vpt *v, uint32_t pid)
{

    v->sink.summary->threads++;
    for (size_t i = 0; i < v->processes.n; i++)
        if (v->processes.v[i] == pid)
            return;
    v->sink.summary->processes++;
    if (!etch_array_push(&v->processes, pid))
        v->no_memory++;
}

/* The packets are those of a Coffee Lake, say, without any of its quirks. */
void etch_vpt_slot_open(struct vpt *v, struct etch_vpt_slot *s, size_t number)
{
    Etch__Stream stream = ETCH__STREAM__INIT;
    Etch__PtConfig pt = ETCH__PT_CONFIG__INIT;

    if (!map_slot(v, s, number))
        return;
    s->state = SLOT_OPEN;
    pt.vendor = (char *)(uintptr_t)"GenuineIntel";
    pt.family = 6;
    pt.model = 158;
    pt.stepping = 10;
    stream.id = (uint32_t)number;
    stream.source = ETCH__SOURCE__SOURCE_VPT;
    stream.of_case = ETCH__STREAM__OF_TID;
    stream.tid = s->tid;
    stream.pid = s->pid;
    stream.pt = &pt;
    stream.snapshot = v->options->snapshot != 0;
    count_process(v, s->pid);
    if (v->known && etch_vpt_known_stream(v->known, stream.id))
        return;
    v->sink.write(v->sink.context, ETCH__RECORD__BODY_STREAM, &stream);
}

static uint32_t parent_of(const struct vpt *v, const struct etch_vpt_slot *s)
{
    for (size_t i = v->children.n; i; i--)
        if (v->children.v[i - 1].tid == s->tid)
            return v->children.v[i - 1].parent;
    return s->shared->parent_tid;
}

/* Without a name of its own a thread bears QEMU's; the program's says more. */
static void name_thread(const struct vpt *v, const struct etch_vpt_thread *t, char name[32])
{
    snprintf(name, 32, "%.15s", t->name);
    if (strcmp(name, "qemu-x86_64") == 0)
        snprintf(name, 32, "%.15s", etch_path_name(v->program));
}

static void write_thread(const struct vpt *v, const struct etch_vpt_slot *s)
{
    Etch__Thread thread = ETCH__THREAD__INIT;
    char name[32];

    name_thread(v, s->shared, name);
    thread.pid = s->pid;
    thread.tid = s->tid;
    thread.name = name;
    thread.start_tsc = s->shared->start_tsc;
    thread.end_tsc = atomic_load(&s->shared->end_tsc);
    thread.parent_tid = parent_of(v, s);
    thread.parent_pid = s->shared->parent_pid;
    v->sink.write(v->sink.context, ETCH__RECORD__BODY_THREAD, &thread);
}

/* Writes the branches that a killed thread had not yet put into a packet. The process is gone, so its memory no longer
 * changes. */
static void write_tail(const struct vpt *v, const struct etch_vpt_slot *s)
{
    const struct etch_vpt_state *state = &s->shared->states[atomic_load(&s->shared->current) & 1];
    uint8_t bytes[ETCH_VPT_TAIL_MAX];
    size_t size = etch_vpt_tail(bytes, state->tnt, state->at);

    if (!size || s->damaged || s->taken != atomic_load(&state->head))
        return;
    v->sink.bytes(v->sink.context, (uint32_t)(s - v->slots.v), s->taken, bytes, size, false);
}

/* The newest state of a dead process, rather than the furthest head: one more packet may be in the ring than counts. */
static uint64_t final_head(const struct etch_vpt_slot *s)
{
    return atomic_load(&s->shared->states[atomic_load(&s->shared->current) & 1].head);
}

/* A zombie writes no more. */
static bool is_alive(uint32_t pid)
{
    struct etch_process_status status;
    struct etch_tids tids;
    bool others;

    if (kill((pid_t)pid, 0) < 0 && errno != EPERM)
        return false;
    if (etch_process_status((pid_t)pid, (pid_t)pid, &status) < 0 || etch_process_threads((pid_t)pid, &tids) < 0)
        return false;
    others = tids.list.n > 1; /* the first thread may have ended before them */
    etch_array_free(&tids.list);
    return others || (status.state != 'Z' && status.state != 'X');
}

static void still_running(const struct vpt *v, const struct etch_vpt_slot *s)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = ETCH__LOSS_CAUSE__LOSS_KILLED;
    loss.stream = (uint32_t)(s - v->slots.v);
    loss.tid = s->tid;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)"a child process went on after the program's end";
    v->sink.lost(v->sink.context, &loss);
}

/* The ring is also in the program's memory: the program may have damaged it, which is a loss. */
static void tell_damage(const struct vpt *v, const struct etch_vpt_slot *s)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    if (!s->damaged && !etch_guarded_cut(s->mapping))
        return;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_RING_GONE;
    loss.stream = (uint32_t)(s - v->slots.v);
    loss.tid = s->tid;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)(s->damaged ? "a ring's counts make no sense; the rest of it was left"
                                                 : "a ring was cut short while it was read");
    v->sink.lost(v->sink.context, &loss);
}

static void unmap_slot(struct etch_vpt_slot *s)
{
    etch_guarded_unmap(s->mapping);
    s->mapping = NULL;
    s->shared = NULL;
    s->state = SLOT_DONE;
}

void etch_vpt_slot_close(struct vpt *v, struct etch_vpt_slot *s)
{
    char name[32];
    bool dead = atomic_load(&s->shared->ended) || !is_alive(s->pid);
    uint64_t head = dead ? final_head(s) : etch_vpt_slot_head(s);

    etch_vpt_events_take(v, s);
    if (v->options->snapshot)
        take_snapshot(v, s, head);
    else
        etch_vpt_slot_take_flow(v, s, head, 1);
    if (dead)
        write_tail(v, s);
    else
        still_running(v, s);
    tell_damage(v, s);
    write_thread(v, s);
    snprintf(name, sizeof(name), "%zu.thread", (size_t)(s - v->slots.v));
    if (!v->known) {
        unlinkat(v->folder.fd, name, 0);
        atomic_fetch_sub(&v->control->rings, VPT_PAGE + v->flow_size + VPT_EVENT_RING);
    }
    unmap_slot(s);
}
