/* SPDX-License-Identifier: MIT */
/* perf's records beside a trace, made by hand: for the tests that stand in for the kernel. */
#ifndef ETCH_TESTS_SIDE_BYTES_H
#define ETCH_TESTS_SIDE_BYTES_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct side_bytes {
    uint8_t bytes[512];
    size_t n;
};

static inline void side_begin(struct side_bytes *r, uint32_t type, uint16_t misc)
{
    struct perf_event_header header = {.type = type, .misc = misc};

    memset(r, 0, sizeof(*r));
    memcpy(r->bytes, &header, sizeof(header));
    r->n = sizeof(header);
}

static inline void side_u32(struct side_bytes *r, uint32_t v)
{
    memcpy(r->bytes + r->n, &v, 4);
    r->n += 4;
}

static inline void side_u64(struct side_bytes *r, uint64_t v)
{
    memcpy(r->bytes + r->n, &v, 8);
    r->n += 8;
}

static inline void side_text(struct side_bytes *r, const char *text)
{
    memcpy(r->bytes + r->n, text, strlen(text) + 1);
    r->n += (strlen(text) + 8) / 8 * 8;
}

/* The trailer of etch_side_sample_type, and the length. */
static inline void side_end(struct side_bytes *r, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu)
{
    uint16_t size;

    side_u32(r, pid);
    side_u32(r, tid);
    side_u64(r, time);
    side_u32(r, cpu);
    side_u32(r, 0);
    side_u64(r, 4711);
    size = (uint16_t)r->n;
    memcpy(r->bytes + offsetof(struct perf_event_header, size), &size, 2);
}

static inline void side_mapped(struct side_bytes *r, uint32_t pid, uint64_t start, uint64_t size, uint64_t offset,
                               const char *path, uint64_t time)
{
    side_begin(r, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
    side_u32(r, pid);
    side_u32(r, pid);
    side_u64(r, start);
    side_u64(r, size);
    side_u64(r, offset);
    r->bytes[r->n] = 20;
    memset(r->bytes + r->n + 4, 0xab, 20);
    r->n += 24;
    side_u32(r, 5);
    side_u32(r, 2);
    side_text(r, path);
    side_end(r, pid, pid, time, 0);
}

static inline void side_named(struct side_bytes *r, uint32_t pid, uint32_t tid, const char *name, int exec,
                              uint64_t time)
{
    side_begin(r, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    side_u32(r, pid);
    side_u32(r, tid);
    side_text(r, name);
    side_end(r, pid, tid, time, 0);
}

static inline void side_task(struct side_bytes *r, uint32_t type, uint32_t pid, uint32_t tid, uint32_t ppid,
                             uint32_t ptid, uint64_t time)
{
    side_begin(r, type, 0);
    side_u32(r, pid);
    side_u32(r, ppid);
    side_u32(r, tid);
    side_u32(r, ptid);
    side_u64(r, time);
    side_end(r, ppid, ptid, time, 0);
}

#endif
