/* SPDX-License-Identifier: MIT */
/* perf's records beside a trace; see sideband.h. */
#include "collector/pt/sideband.h"

#include <linux/perf_event.h>
#include <string.h>

const uint64_t etch_side_sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
#define TRAILER 32u /* those four, at the end of each record that is no sample */

static uint32_t u32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static bool take_text(struct etch_side *side, const uint8_t *p, size_t n)
{
    side->text = n && memchr(p, 0, n) ? (const char *)p : NULL;
    return side->text;
}

static bool read_mapped(struct etch_side *side, const uint8_t *p, size_t n, uint16_t misc)
{
    if (n < 65)
        return false;
    side->kind = ETCH_SIDE_MAPPED;
    side->pid = u32(p);
    side->tid = u32(p + 4);
    side->start = u64(p + 8);
    side->size = u64(p + 16);
    side->offset = u64(p + 24);
    side->prot = u32(p + 56) & 7;
    if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        if (p[32] > sizeof(side->build_id))
            return false;
        side->build_id_size = p[32];
        memcpy(side->build_id, p + 36, side->build_id_size);
    }
    return side->size && side->start + side->size > side->start && take_text(side, p + 64, n - 64);
}

static bool read_pair(struct etch_side *side, const uint8_t *p, size_t n, enum etch_side_kind kind)
{
    if (n < 8)
        return false;
    side->kind = kind;
    side->pid = u32(p);
    side->tid = u32(p + 4);
    return true;
}

static bool read_task(struct etch_side *side, const uint8_t *p, size_t n, enum etch_side_kind kind)
{
    if (n < 24)
        return false;
    side->kind = kind;
    side->pid = u32(p);
    side->ppid = u32(p + 4);
    side->tid = u32(p + 8);
    side->ptid = u32(p + 12);
    return true;
}

static bool read_aux(struct etch_side *side, const uint8_t *p, size_t n)
{
    if (n < 24)
        return false;
    side->kind = ETCH_SIDE_AUX;
    side->offset = u64(p);
    side->size = u64(p + 8);
    side->flags = u64(p + 16);
    return true;
}

static bool read_lost(struct etch_side *side, const uint8_t *p, size_t n)
{
    if (n < 16)
        return false;
    side->kind = ETCH_SIDE_LOST;
    side->lost = u64(p + 8);
    return true;
}

static void read_switch(struct etch_side *side, uint16_t misc)
{
    side->kind = ETCH_SIDE_SWITCHED;
    side->in = !(misc & PERF_RECORD_MISC_SWITCH_OUT);
    side->preempted = !side->in && misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
}

bool etch_side_read(struct etch_side *side, const uint8_t *record, size_t size)
{
    struct perf_event_header header;
    const uint8_t *body = record + sizeof(header), *trailer;
    size_t n;

    memset(side, 0, sizeof(*side));
    if (size < sizeof(header) + TRAILER)
        return false;
    memcpy(&header, record, sizeof(header));
    if (header.size != size)
        return false;
    n = size - sizeof(header) - TRAILER;
    trailer = body + n;
    side->pid = u32(trailer);
    side->tid = u32(trailer + 4);
    side->time = u64(trailer + 8);
    side->cpu = u32(trailer + 16);
    switch (header.type) {
    case PERF_RECORD_MMAP2:
        return read_mapped(side, body, n, header.misc);
    case PERF_RECORD_COMM:
        side->exec = header.misc & PERF_RECORD_MISC_COMM_EXEC;
        return read_pair(side, body, n, ETCH_SIDE_NAMED) && take_text(side, body + 8, n - 8);
    case PERF_RECORD_FORK:
        return read_task(side, body, n, ETCH_SIDE_FORKED);
    case PERF_RECORD_EXIT:
        return read_task(side, body, n, ETCH_SIDE_EXITED);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE: /* the other task has a record of its own */
        read_switch(side, header.misc);
        return true;
    case PERF_RECORD_ITRACE_START:
        side->in = true;
        return read_pair(side, body, n, ETCH_SIDE_STARTED);
    case PERF_RECORD_AUX:
        return read_aux(side, body, n);
    case PERF_RECORD_LOST:
        return read_lost(side, body, n);
    default:
        return true;
    }
}
