/* SPDX-License-Identifier: MIT */
/* The memory that the recorded program's synchronisation events pass through: a file without a name that etch makes and
 * the preloaded library maps, so that it outlives either of them. One ring per thread; its thread writes and never
 * waits, etch reads behind it; what the writer overtakes is counted as lost. Beside each ring of events stands one of
 * the thread's newest C++ exceptions: it is read when the program fails. */
#ifndef ETCH_COLLECTOR_SYNC_RING_H
#define ETCH_COLLECTOR_SYNC_RING_H

#include <stdint.h>

#define ETCH_SYNC_MAGIC 0x31636e797365746full
#define ETCH_SYNC_VERSION 4u
#define ETCH_SYNC_THREADS 1024u /* at a time; pages not touched cost nothing */
#define ETCH_SYNC_EVENTS 1024u  /* per ring: a power of two. Below 64 KiB, for each of many threads ... */
#define ETCH_SYNC_LARGES 16u    /* ... and for those few that make more than is read in time, */
#define ETCH_SYNC_LARGE 32768u  /* so many, below 2 MB */

#define ETCH_THROWS 8u         /* per ring: the newest exceptions of a thread */
#define ETCH_THROW_STACK 4096u /* bytes of the stack that an exception is thrown from */
#define ETCH_TYPE_MAX 512u     /* bytes of a type's name, a longer one is cut */
#define ETCH_WHAT_MAX 1024u    /* bytes of what an exception says, a longer text is cut */

/* The file, for the library: "/proc/PID/fd/N". */
#define ETCH_SYNC_VARIABLE "ETCH_SYNC"
/* The program's own LD_PRELOAD. Not set if the program has none. */
#define ETCH_SYNC_PRELOAD_VARIABLE "ETCH_SYNC_PRELOAD"

struct etch_sync_event {
    uint64_t sequence; /* index + 1, written last */
    uint64_t tsc;
    uint64_t across; /* the stamp on the other side of the call, of the same CPU; 0: none, or not yet */
    uint64_t object, other, caller;
    int32_t result;
    uint16_t cpu;
    uint8_t op; /* etch.SyncOp */
    uint8_t reserved;
};

enum etch_sync_state {
    ETCH_SYNC_FREE,
    ETCH_SYNC_USED,
    ETCH_SYNC_ENDED, /* its thread is gone; free again when etch has read the rest */
};

struct etch_sync_ring {
    _Alignas(64) uint32_t state;
    uint32_t tid;
    uint64_t start_routine;
    uint64_t next;  /* events ever begun; only its thread writes it */
    uint64_t grown; /* events from this one on are in a large ring; 0: none is */
    uint32_t large; /* which */
    uint32_t reserved;
    uint64_t read; /* events that etch is done with; only etch writes it */
    _Alignas(64) struct etch_sync_event events[ETCH_SYNC_EVENTS];
};

_Static_assert(sizeof(struct etch_sync_ring) <= 65536, "what a thread costs");

struct etch_sync_large {
    struct etch_sync_event events[ETCH_SYNC_LARGE];
};

/* One call of __cxa_throw, __cxa_rethrow or std::rethrow_exception. The registers and the stack are those of the
 * caller, as they are when the call has just returned; what the caller may not rely on is not there. */
struct etch_throw {
    uint64_t sequence; /* index + 1, written last */
    uint64_t tsc;
    uint64_t object, type; /* addresses of the exception and of its type_info */
    uint64_t bx, bp, sp, ip, r12, r13, r14, r15;
    uint64_t made; /* where the same caller's call of __cxa_allocate_exception returned to; 0: not known */
    uint32_t tid;  /* a ring passes from one thread to another; its throws stay */
    uint16_t stack_size;
    uint8_t again; /* not a new exception */
    uint8_t reserved;
    uint8_t stack[ETCH_THROW_STACK]; /* from sp up */
};

enum etch_terminate_state {
    ETCH_TERMINATE_NOT,
    ETCH_TERMINATE_NONE,   /* no exception is active */
    ETCH_TERMINATE_ACTIVE, /* an exception is active; the members that follow describe it */
    ETCH_TERMINATE_OTHER,  /* an exception is active that another C++ library made */
};

enum etch_terminate_known {
    ETCH_TERMINATE_VALUE = 1,   /* the object's first eight bytes */
    ETCH_TERMINATE_MESSAGE = 2, /* `what` is the text that the exception was made with */
    ETCH_TERMINATE_WHAT = 4,    /* `what` is the text from a call of the exception's what() */
    ETCH_TERMINATE_TEXT = 8,    /* `what` is the text that was thrown: a string, or the target of a pointer to char */
    ETCH_TERMINATE_ABORT = 16,  /* seen at abort() only */
};

/* A thread's way to std::terminate. */
struct etch_terminate {
    uint32_t state; /* enum etch_terminate_state, written last */
    uint32_t tid;
    uint64_t tsc;
    uint64_t object;
    uint64_t value;
    uint32_t known;           /* enum etch_terminate_known */
    uint32_t on_their_way;    /* further exceptions for which the stack is being unwound */
    char type[ETCH_TYPE_MAX]; /* as type_info has it; not whole where the last byte is not 0 */
    char what[ETCH_WHAT_MAX];
};

struct etch_throw_ring {
    _Alignas(4096) uint64_t next; /* throws ever begun; only its thread writes it */
    struct etch_terminate terminate;
    struct etch_throw throws[ETCH_THROWS];
};

struct etch_sync_memory {
    uint64_t magic;
    uint32_t version;
    uint32_t threads, events;
    uint32_t pid;         /* of the program, once the library is in it */
    uint64_t unplaced;    /* events of threads for which no ring was free */
    uint32_t claimed;     /* rings from here on were never used */
    uint32_t emulated;    /* the program runs under QEMU: RDTSCP does not give the number of the CPU */
    uint32_t only_throws; /* no synchronisation events are wanted */
    uint32_t larges;      /* large rings that threads asked for */
    _Alignas(4096) struct etch_sync_ring rings[ETCH_SYNC_THREADS];
    struct etch_throw_ring throws[ETCH_SYNC_THREADS]; /* of the thread that has the ring of the same number */
    struct etch_sync_large large[ETCH_SYNC_LARGES];
};

/* How many rings were ever used. The program may have written anything into `claimed`. */
static inline uint32_t etch_sync_claimed(const struct etch_sync_memory *m)
{
    uint32_t claimed = __atomic_load_n(&m->claimed, __ATOMIC_ACQUIRE); /* pairs with the release of a claim */

    return claimed < ETCH_SYNC_THREADS ? claimed : ETCH_SYNC_THREADS;
}

/* The place of the event with this number. */
static inline struct etch_sync_event *etch_sync_place(struct etch_sync_memory *m, struct etch_sync_ring *ring,
                                                      uint64_t grown, uint32_t large, uint64_t index)
{
    if (!grown || index < grown)
        return &ring->events[index % ETCH_SYNC_EVENTS];
    return &m->large[large % ETCH_SYNC_LARGES].events[(index - grown) % ETCH_SYNC_LARGE];
}

#endif
