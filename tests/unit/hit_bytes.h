/* SPDX-License-Identifier: MIT */
/* A watchpoint's record as the kernel writes it, for tests. */
#ifndef ETCH_TESTS_HIT_BYTES_H
#define ETCH_TESTS_HIT_BYTES_H

#include "collector/hits.h"

#include <linux/perf_event.h>
#include <string.h>

struct hit_bytes {
    uint64_t words[64];
    size_t n;
};

static inline void hit_finish(struct hit_bytes *r, uint32_t type)
{
    struct perf_event_header header = {.type = type, .size = (uint16_t)(r->n * 8)};

    memcpy(r->words, &header, 8);
}

/* With room for so many words of the stack, of which so many bytes were copied. */
static inline void hit_sample(struct hit_bytes *r, unsigned room, uint64_t copied)
{
    const uint64_t fixed[] = {0, 77, 0x401234, (uint64_t)12 << 32 | 11, 5000, 0x404010, 3, PERF_SAMPLE_REGS_ABI_64};

    memcpy(r->words, fixed, sizeof(fixed));
    r->n = 8;
    for (unsigned i = 0; i < ETCH_HIT_REGISTERS; i++)
        if (etch_hits_registers >> i & 1)
            r->words[r->n++] = 0x100 + i;
    r->words[r->n++] = (uint64_t)8 * room;
    for (unsigned i = 0; i < room; i++)
        r->words[r->n++] = 0x200 + i;
    if (room)
        r->words[r->n++] = copied;
    hit_finish(r, PERF_RECORD_SAMPLE);
}

#endif
