/* SPDX-License-Identifier: MIT */
/* Reading perf's watchpoint records; see hits.h. */
#include "collector/hits.h"

#include <linux/perf_event.h>
#include <string.h>

const uint64_t etch_hits_sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                       PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER |
                                       PERF_SAMPLE_STACK_USER;
const uint64_t etch_hits_registers = 0xff0fff; /* ax..ss, r8..r15: what a 64-bit kernel grants */

struct cursor {
    const uint8_t *at, *end;
    bool short_;
};

static uint64_t take(struct cursor *c)
{
    uint64_t v = 0;

    if (c->end - c->at < 8) {
        c->short_ = true;
        return 0;
    }
    memcpy(&v, c->at, 8);
    c->at += 8;
    return v;
}

/* Room for as much as was asked for, and behind it how much of that the kernel could copy. */
static void read_stack(struct cursor *c, struct etch_hit *hit)
{
    uint64_t room = take(c), copied;

    if (!room)
        return;
    if (room > (uint64_t)(c->end - c->at)) {
        c->short_ = true;
        return;
    }
    hit->stack = c->at;
    c->at += room;
    copied = take(c);
    c->short_ |= copied > room;
    hit->stack_size = copied;
}

static bool read_sample(struct cursor *c, struct etch_hit *hit)
{
    uint64_t word, abi;

    memset(hit, 0, sizeof(*hit));
    hit->event = take(c);
    hit->ip = take(c);
    word = take(c);
    hit->pid = (uint32_t)word;
    hit->tid = (uint32_t)(word >> 32);
    hit->perf_ns = take(c);
    hit->address = take(c);
    hit->cpu = (uint32_t)take(c);
    abi = take(c);
    hit->registers_known = abi == PERF_SAMPLE_REGS_ABI_64;
    for (unsigned i = 0; abi && i < ETCH_HIT_REGISTERS; i++)
        if (etch_hits_registers >> i & 1)
            hit->registers[i] = take(c);
    read_stack(c, hit);
    return !c->short_;
}

enum etch_hits_item etch_hits_next(const uint8_t *bytes, size_t size, size_t *used, struct etch_hit *hit,
                                   uint64_t *lost)
{
    struct perf_event_header header;
    struct cursor c;

    if (size == 0)
        return ETCH_HITS_END;
    if (size < sizeof(header))
        return ETCH_HITS_BAD;
    memcpy(&header, bytes, sizeof(header));
    if (header.size < sizeof(header) || header.size > size)
        return ETCH_HITS_BAD;
    *used = header.size;
    c = (struct cursor){bytes + sizeof(header), bytes + header.size, false};
    if (header.type == PERF_RECORD_SAMPLE)
        return read_sample(&c, hit) ? ETCH_HITS_HIT : ETCH_HITS_BAD;
    if (header.type == PERF_RECORD_LOST) {
        hit->event = take(&c);
        *lost = take(&c);
        return c.short_ ? ETCH_HITS_BAD : ETCH_HITS_LOST;
    }
    return ETCH_HITS_OTHER;
}
