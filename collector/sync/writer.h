/* SPDX-License-Identifier: MIT */
/* Private to the preloaded library: the writing end of the rings (ring.h). The functions here are the hot path, and
 * are inlined into each call that the library stands before. */
#ifndef ETCH_COLLECTOR_SYNC_WRITER_H
#define ETCH_COLLECTOR_SYNC_WRITER_H

#include "collector/sync/ring.h"

#include <pthread.h>
#include <stdbool.h>

/* As in etch.proto; the library does not link protobuf. */
enum {
    THREAD_CREATE = 1,
    THREAD_START = 2,
    THREAD_EXIT = 3,
    THREAD_JOIN = 4,
    MUTEX_LOCK = 5,
    MUTEX_UNLOCK = 6,
    RWLOCK_RDLOCK = 7,
    RWLOCK_WRLOCK = 8,
    RWLOCK_UNLOCK = 9,
    COND_WAIT_BEGIN = 10,
    COND_WAIT_END = 11,
    COND_SIGNAL = 12,
    COND_BROADCAST = 13,
    BARRIER_ENTER = 14,
    BARRIER_LEAVE = 15,
    SEM_POST = 16,
    SEM_WAIT = 17,
    SPIN_LOCK = 18,
    SPIN_UNLOCK = 19,
    MUTEX_BLOCKED = 20,
    MUTEX_INIT = 21,
    MUTEX_DESTROY = 22,
    SEM_INIT = 23,
    BARRIER_INIT = 24,
};

#define EXPORT __attribute__((visibility("default")))
#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))
#define HIDDEN __attribute__((visibility("hidden")))
#define COLD __attribute__((noinline, cold))

/* On a page that the kernel empties in every child process, however that is made: a child must not write into its
 * parent's rings. */
struct etch_shim_joined {
    struct etch_sync_memory *memory; /* NULL: not recording synchronisation */
    struct etch_sync_memory *mapped; /* NULL: not recording at all */
};

extern HIDDEN struct etch_shim_joined *etch_shim_joined;
extern HIDDEN bool etch_shim_emulated;

/* The calling thread's ring. initial-exec: an access is one instruction, also in a signal handler. */
extern HIDDEN __thread struct etch_sync_ring *etch_shim_ring __attribute__((tls_model("initial-exec")));

/* Makes ready to see threads end. */
HIDDEN bool etch_shim_watch_ends(void);

/* The thread's first event: finds a ring for the thread. NULL: none is left. */
HIDDEN COLD struct etch_sync_ring *etch_shim_claim_ring(struct etch_sync_memory *mapped);

HIDDEN COLD uint64_t etch_shim_stamp_emulated(uint16_t *cpu);

/* Gives the thread a large ring if its events come faster than they are read, and one is left. */
HIDDEN COLD void etch_shim_grow_ring(struct etch_sync_memory *memory, struct etch_sync_ring *own, uint64_t index);

/* Takes the next place. Not locked, since no other thread writes it, but one instruction: a signal handler that comes
 * between gets a place of its own. */
static inline uint64_t take_place(struct etch_sync_ring *own)
{
    uint64_t index = 1;

    __asm__ volatile("xaddq %0, %1" : "+r"(index), "+m"(own->next) : : "memory", "cc");
    return index;
}

/* After everything before it has executed. */
static inline uint64_t stamp(uint16_t *cpu)
{
    uint32_t lo, hi, aux;

    if (__builtin_expect(etch_shim_emulated, 0))
        return etch_shim_stamp_emulated(cpu);
    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux) : : "memory");
    *cpu = (uint16_t)(aux & 0xfff);
    return (uint64_t)hi << 32 | lo;
}

/* Takes a place and stamps it; the event is not to be seen before finish_event(). NULL: not recording. */
static inline struct etch_sync_event *begin_event(uint64_t *index)
{
    struct etch_sync_memory *memory = etch_shim_joined->memory;
    struct etch_sync_ring *own = etch_shim_ring;
    struct etch_sync_event *event;

    if (__builtin_expect(!memory, 0))
        return NULL;
    if (__builtin_expect(!own, 0)) {
        own = etch_shim_claim_ring(memory);
        if (!own) {
            __atomic_fetch_add(&memory->unplaced, 1, __ATOMIC_RELAXED);
            return NULL;
        }
    }
    *index = take_place(own);
    if (__builtin_expect(*index % ETCH_SYNC_EVENTS == ETCH_SYNC_EVENTS / 2 && !own->grown, 0))
        etch_shim_grow_ring(memory, own, *index);
    event = etch_sync_place(memory, own, own->grown, own->large, *index);
    /* A reader that finds 0, or another lap's number, before or after its copy throws the copy away. */
    __atomic_store_n(&event->sequence, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* x86 keeps stores in order; the compiler must as well */
    event->across = 0;
    event->tsc = stamp(&event->cpu);
    return event;
}

/* A stamp before a call that acquires. */
struct before {
    uint64_t tsc;
    uint16_t cpu;
};

static inline struct before before_call(void)
{
    struct before before = {0};

    if (etch_shim_joined->memory)
        before.tsc = stamp(&before.cpu);
    return before;
}

static inline void finish_event(struct etch_sync_event *event, uint64_t index, uint8_t op, uint64_t object,
                                uint64_t other, int result, uint64_t caller)
{
    event->object = object;
    event->other = other;
    event->caller = caller;
    event->result = result;
    event->op = op;
    /* Release: pairs with the reader's acquire of the sequence. */
    __atomic_store_n(&event->sequence, index + 1, __ATOMIC_RELEASE);
}

static inline struct etch_sync_event *put(uint8_t op, uint64_t object, uint64_t other, int result, uint64_t caller)
{
    uint64_t index;
    struct etch_sync_event *event = begin_event(&index);

    if (event)
        finish_event(event, index, op, object, other, result, caller);
    return event;
}

/* After an acquire that began with `before`. */
static inline void put_since(struct before before, uint8_t op, uint64_t object, int result, uint64_t caller)
{
    uint64_t index;
    struct etch_sync_event *event = begin_event(&index);

    if (!event)
        return;
    event->across = before.cpu == event->cpu ? before.tsc : 0;
    finish_event(event, index, op, object, 0, result, caller);
}

/* After a release that put `event`. The reader may have it already; then it does without. */
static inline void call_over(struct etch_sync_event *event)
{
    uint16_t cpu;
    uint64_t tsc;

    if (!event || !etch_shim_joined->memory)
        return;
    tsc = stamp(&cpu);
    if (cpu == event->cpu)
        __atomic_store_n(&event->across, tsc, __ATOMIC_RELAXED);
}

#endif
