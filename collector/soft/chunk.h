/* SPDX-License-Identifier: MIT */
/* Private to the software recorder's runtime: the calling thread's ring, its chunks, and its write position. */
#ifndef ETCH_COLLECTOR_SOFT_CHUNK_H
#define ETCH_COLLECTOR_SOFT_CHUNK_H

#include "collector/soft/runtime.h"

extern SHARED __thread uint8_t *etch_soft_cur __attribute__((tls_model("initial-exec")));
extern SHARED __thread struct etch_soft_act *etch_soft_top __attribute__((tls_model("initial-exec")));
extern SHARED __thread struct etch_soft_ring *etch_soft_ring __attribute__((tls_model("initial-exec")));

/* The frame of the function that is dark, and calls its plain copy; NULL: none. */
extern SHARED __thread uint8_t *etch_soft_shade __attribute__((tls_model("initial-exec")));

/* Threads without a ring write to this memory. */
extern HIDDEN uint8_t etch_soft_nowhere[2 * ETCH_SOFT_CHUNK];

/* All modules of a process use the same memory, so that each module recognises it. */
static inline uint8_t *nowhere_begin(void)
{
    if (!etch_soft_recorder.nowhere)
        etch_soft_recorder.nowhere = etch_soft_nowhere;
    return etch_soft_recorder.nowhere + ETCH_SOFT_SLACK;
}
#define NOWHERE nowhere_begin()

/* Reads the time stamp counter; 0 if the program may not read the counter. */
static inline uint64_t stamp(uint32_t *cpu)
{
    uint32_t lo, hi, aux;

    *cpu = 0;
    if (__builtin_expect(etch_soft_quiet, 0))
        return 0;
    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux));
    *cpu = aux & 0xfff; /* Linux keeps the CPU there */
    return (uint64_t)hi << 32 | lo;
}

typedef uint64_t word __attribute__((aligned(1), may_alias));
typedef uint16_t half __attribute__((aligned(1), may_alias));

static inline void put_word(void *to, uint64_t value)
{
    *(volatile word *)to = value;
}

static inline uint8_t *chunk_of(const uint8_t *cur)
{
    return (uint8_t *)((uintptr_t)(cur - 1 - ETCH_SOFT_SLACK) & ~(uintptr_t)(ETCH_SOFT_CHUNK - 1)) + ETCH_SOFT_SLACK;
}

static inline uint8_t *chunk_at(struct etch_soft_ring *ring, uint64_t number)
{
    return (uint8_t *)ring + ETCH_SOFT_SLACK + ETCH_SOFT_CHUNK * number;
}

static inline bool is_nowhere(const uint8_t *cur)
{
    return (uintptr_t)cur + ETCH_SOFT_SLACK - (uintptr_t)nowhere_begin() < sizeof(etch_soft_nowhere);
}

static inline bool has_ring(void)
{
    return etch_soft_ring && !is_nowhere(etch_soft_cur);
}

/* The room in the chunk without the slack, which stays for compiled code. */
static inline size_t room(const uint8_t *cur)
{
    size_t used = ((uintptr_t)cur - ETCH_SOFT_SLACK - 1) & (ETCH_SOFT_CHUNK - 1);

    return used < ETCH_SOFT_FULL ? ETCH_SOFT_FULL - 1 - used : 0;
}

/* Begins a chunk and returns the address of its first record; NULL if all chunks are in use. */
HIDDEN uint8_t *etch_soft_begin_chunk(enum etch_soft_chunk_kind kind, uint64_t interrupted, uint64_t ip);

#endif
