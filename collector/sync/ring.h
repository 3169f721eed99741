/* SPDX-License-Identifier: MIT */
/* The memory that the recorded program's synchronisation events pass through: a file without a name that etch makes and
 * the preloaded library maps, so that it outlives either of them. One ring per thread; its thread writes and never
 * waits, etch reads behind it; what the writer overtakes is counted as lost. */
#ifndef ETCH_COLLECTOR_SYNC_RING_H
#define ETCH_COLLECTOR_SYNC_RING_H

#include <stdint.h>

#define ETCH_SYNC_MAGIC 0x31636e797365746full
#define ETCH_SYNC_VERSION 2u
#define ETCH_SYNC_THREADS 1024u /* at a time; pages not touched cost nothing */
#define ETCH_SYNC_EVENTS 32768u /* per ring: a power of two */

/* Where the library finds the file: "/proc/PID/fd/N". */
#define ETCH_SYNC_VARIABLE "ETCH_SYNC"
/* What LD_PRELOAD was without us; not set where it was not. */
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
    uint64_t next; /* events ever begun; only its thread writes it */
    _Alignas(64) struct etch_sync_event events[ETCH_SYNC_EVENTS];
};

struct etch_sync_memory {
    uint64_t magic;
    uint32_t version;
    uint32_t threads, events;
    uint32_t pid;      /* of the program, once the library is in it */
    uint64_t unplaced; /* events of threads for which no ring was free */
    uint32_t claimed;  /* rings from here on were never used */
    uint32_t emulated; /* the program runs under QEMU: RDTSCP does not say which CPU it is on */
    _Alignas(4096) struct etch_sync_ring rings[ETCH_SYNC_THREADS];
};

#endif
