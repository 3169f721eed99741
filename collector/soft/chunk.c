/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: a ring is a circle of chunks, each of which can be read without the others. */
#include "collector/soft/chunk.h"

#include "collector/soft/budget.h"

uint8_t etch_soft_nowhere[2 * ETCH_SOFT_CHUNK] __attribute__((aligned(ETCH_SOFT_CHUNK)));

_Static_assert(sizeof(struct etch_soft_ring) <= ETCH_SOFT_SLACK, "a ring's head lies before its chunks");

static void zero(void *at, size_t size)
{
    size_t words = size / 8;

    __asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(0L) : "memory");
}

/* A chunk that an interrupted context goes on with must not be given away. */
static bool is_open(const struct etch_soft_ring *ring, const uint8_t *chunk)
{
    for (uint32_t i = 0; i < ring->handlers; i++)
        if (chunk_of((const uint8_t *)ring->handler[i].cur) == chunk)
            return true;
    return false;
}

static uint64_t next_seq(struct etch_soft_ring *ring)
{
    uint64_t one = 1;

    /* One instruction: a signal handler may do the same on this thread at any time. */
    __asm__ volatile("xaddq %0, %1" : "+r"(one), "+m"(ring->seq) : : "memory");
    return one;
}

uint8_t *etch_soft_begin_chunk(enum etch_soft_chunk_kind kind, uint64_t interrupted, uint64_t ip)
{
    struct etch_soft_ring *ring = etch_soft_ring;
    uint32_t chunks = etch_soft_recorder.chunks;
    uint64_t before = 0;

    if (kind == ETCH_SOFT_CONTINUED && has_ring())
        before = ((const struct etch_soft_chunk *)chunk_of(etch_soft_cur))->tsc;
    for (uint32_t i = 0; i < chunks; i++) {
        uint64_t seq = next_seq(ring);
        uint8_t *at = chunk_at(ring, seq % chunks);
        volatile struct etch_soft_chunk *chunk = (volatile struct etch_soft_chunk *)at;
        uint32_t cpu;

        if (is_open(ring, at))
            continue;
        chunk->magic = 0; /* readers pass over a chunk that is not whole yet */
        zero(at + sizeof(uint64_t), ETCH_SOFT_CHUNK - sizeof(uint64_t));
        chunk->kind = kind;
        chunk->seq = seq;
        if (kind == ETCH_SOFT_SIGNAL)
            ring->context = seq;
        chunk->context = ring->context;
        chunk->interrupted = interrupted;
        chunk->ip = ip;
        chunk->tsc = stamp(&cpu);
        if (kind == ETCH_SOFT_CONTINUED)
            etch_soft_charge(before, chunk->tsc);
        chunk->cpu = cpu;
        chunk->magic = ETCH_SOFT_CHUNK_MAGIC;
        return at + sizeof(struct etch_soft_chunk);
    }
    return NULL;
}
