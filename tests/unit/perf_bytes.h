/* SPDX-License-Identifier: MIT */
/* A small perf.data in memory, record by record, for the tests: synthetic, with one Intel PT and one dummy event. */
#ifndef ETCH_TESTS_PERF_BYTES_H
#define ETCH_TESTS_PERF_BYTES_H

#include "decoder/recording/perf_data.h"

#include <errno.h>
#include <linux/perf_event.h>

struct perf_bytes {
    uint8_t v[1 << 16];
    size_t n;
    size_t record; /* where the open record begins */
    bool pipe;
};

enum { PB_PT = 6, PB_PT_ID = 11, PB_DUMMY_ID = 12, PB_TRACEPOINT_ID = 13, PB_ATTR = 112, PB_EVENTS = 3 };
#define PB_SAMPLE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static inline void pb_bytes(struct perf_bytes *b, const void *bytes, size_t n)
{
    memcpy(b->v + b->n, bytes, n);
    b->n += n;
}

static inline void pb_u32(struct perf_bytes *b, uint32_t x)
{
    pb_bytes(b, &x, 4);
}

static inline void pb_u64(struct perf_bytes *b, uint64_t x)
{
    pb_bytes(b, &x, 8);
}

static inline void pb_text(struct perf_bytes *b, const char *text)
{
    size_t n = strlen(text);

    pb_bytes(b, text, n);
    memset(b->v + b->n, 0, 8 - n % 8);
    b->n += 8 - n % 8;
}

static inline void pb_begin(struct perf_bytes *b, uint32_t type, uint16_t misc)
{
    b->record = b->n;
    pb_u32(b, type);
    pb_u32(b, misc);
}

static inline void pb_end(struct perf_bytes *b)
{
    uint16_t size = (uint16_t)(b->n - b->record);

    memcpy(b->v + b->record + 6, &size, 2);
}

static inline void pb_end_kernel(struct perf_bytes *b, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu)
{
    pb_u32(b, pid);
    pb_u32(b, tid);
    pb_u64(b, time);
    pb_u64(b, cpu);
    pb_u64(b, PB_DUMMY_ID);
    pb_end(b);
}

static inline void pb_attr(struct perf_bytes *b, uint32_t type, uint64_t config, uint64_t sample_type)
{
    pb_u32(b, type);
    pb_u32(b, PB_ATTR);
    pb_u64(b, config);
    pb_u64(b, 1);
    pb_u64(b, sample_type);
    pb_u64(b, PERF_FORMAT_ID);
    pb_u64(b, 1u << 18);
    memset(b->v + b->n, 0, PB_ATTR - 48);
    b->n += PB_ATTR - 48;
}

static inline void pb_attr_number(struct perf_bytes *b, unsigned i)
{
    if (i == 0)
        pb_attr(b, PB_PT, 0x300e601, PB_SAMPLE);
    else if (i == 1)
        pb_attr(b, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, PB_SAMPLE);
    else
        pb_attr(b, PERF_TYPE_TRACEPOINT, 317, PB_SAMPLE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW);
}

/* Header and events; the records follow. pb_finish() closes the file. */
static inline void pb_start(struct perf_bytes *b, bool pipe)
{
    memset(b, 0, sizeof(*b));
    b->pipe = pipe;
    pb_u64(b, PERF_FILE_MAGIC);
    if (pipe) {
        pb_u64(b, 16);
        for (unsigned i = 0; i < PB_EVENTS; i++) {
            pb_begin(b, PERF_USER_HEADER_ATTR, 0);
            pb_attr_number(b, i);
            pb_u64(b, PB_PT_ID + i);
            pb_end(b);
        }
        return;
    }
    pb_u64(b, 104);
    pb_u64(b, PB_ATTR + 16);
    pb_u64(b, 104 + 8 * PB_EVENTS);
    pb_u64(b, PB_EVENTS * (PB_ATTR + 16));
    pb_u64(b, 104 + 8 * PB_EVENTS + PB_EVENTS * (PB_ATTR + 16));
    b->n = 104;
    for (unsigned i = 0; i < PB_EVENTS; i++)
        pb_u64(b, PB_PT_ID + i);
    for (unsigned i = 0; i < PB_EVENTS; i++) {
        pb_attr_number(b, i);
        pb_u64(b, 104 + 8 * i);
        pb_u64(b, 8);
    }
}

static inline void pb_string_feature(struct perf_bytes *b, const char *text)
{
    pb_u32(b, 64);
    memset(b->v + b->n, 0, 64);
    memcpy(b->v + b->n, text, strlen(text));
    b->n += 64;
}

/* A file gets its data size, the CPU's name and the tracepoint's; a pipe has them as records, see pb_features(). */
static inline void pb_event_desc(struct perf_bytes *b)
{
    pb_u32(b, 1);
    pb_u32(b, PB_ATTR);
    pb_attr_number(b, 2);
    pb_u32(b, 1);
    pb_string_feature(b, "sched:sched_switch");
    pb_u64(b, PB_TRACEPOINT_ID);
}

static inline void pb_finish(struct perf_bytes *b)
{
    uint64_t start = 104 + 8 * PB_EVENTS + PB_EVENTS * (PB_ATTR + 16), size = b->n - start;
    uint64_t bits = 1u << PERF_FEATURE_CPUID | 1u << PERF_FEATURE_EVENT_DESC;
    size_t sections = b->n;
    uint64_t places[4];

    if (b->pipe)
        return;
    memcpy(b->v + 48, &size, 8);
    memcpy(b->v + 72, &bits, 8);
    b->n += sizeof(places);
    places[0] = b->n;
    pb_string_feature(b, "GenuineIntel,6,94,3");
    places[1] = b->n - places[0];
    places[2] = b->n;
    pb_event_desc(b);
    places[3] = b->n - places[2];
    memcpy(b->v + sections, places, sizeof(places));
}

static inline void pb_features(struct perf_bytes *b)
{
    if (!b->pipe)
        return;
    pb_begin(b, PERF_USER_FEATURE, 0);
    pb_u64(b, PERF_FEATURE_CPUID);
    pb_string_feature(b, "GenuineIntel,6,94,3");
    pb_end(b);
    pb_begin(b, PERF_USER_FEATURE, 0);
    pb_u64(b, PERF_FEATURE_EVENT_DESC);
    pb_event_desc(b);
    pb_end(b);
}

/* perf's clock is the TSC's half here. */
static inline void pb_auxtrace_info(struct perf_bytes *b, bool snapshot)
{
    const uint64_t words[PERF_PT_WORDS] = {PB_PT, 1,   1,       0,   1, 1024, 2048, 3, snapshot,
                                           1,     512, 0x3c000, 266, 2, 2,    32,   0};

    pb_begin(b, PERF_USER_AUXTRACE_INFO, 0);
    pb_u64(b, PERF_AUXTRACE_INTEL_PT);
    pb_bytes(b, words, sizeof(words));
    pb_end(b);
}

static inline void pb_mmap2(struct perf_bytes *b, uint32_t pid, uint64_t start, uint64_t size, uint64_t time,
                            const char *path)
{
    pb_begin(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    pb_u32(b, pid);
    pb_u32(b, pid);
    pb_u64(b, start);
    pb_u64(b, size);
    pb_u64(b, 0);
    pb_bytes(b, (uint8_t[24]){0}, 24);
    pb_u32(b, 5);
    pb_u32(b, 2);
    pb_text(b, path);
    pb_end_kernel(b, pid, pid, time, 1);
}

static inline void pb_comm(struct perf_bytes *b, uint32_t pid, uint64_t time, bool exec, const char *name)
{
    pb_begin(b, PERF_RECORD_COMM, (uint16_t)(PERF_RECORD_MISC_USER | (exec ? PERF_RECORD_MISC_COMM_EXEC : 0)));
    pb_u32(b, pid);
    pb_u32(b, pid);
    pb_text(b, name);
    pb_end_kernel(b, pid, pid, time, 1);
}

static inline void pb_task(struct perf_bytes *b, uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid,
                           uint32_t ptid, uint64_t time)
{
    pb_begin(b, type, 0);
    pb_u32(b, pid);
    pb_u32(b, ppid);
    pb_u32(b, tid);
    pb_u32(b, ptid);
    pb_u64(b, time);
    pb_end_kernel(b, ppid, ptid, time, 1);
}

static inline void pb_words(struct perf_bytes *b, uint32_t type, uint16_t misc, const uint64_t *words, size_t n,
                            uint32_t tid, uint64_t time)
{
    pb_begin(b, type, misc);
    pb_bytes(b, words, 8 * n);
    pb_end_kernel(b, tid, tid, time, 1);
}

static inline void pb_auxtrace(struct perf_bytes *b, uint64_t offset, uint32_t cpu, uint32_t tid, const void *bytes,
                               size_t n)
{
    pb_begin(b, PERF_USER_AUXTRACE, 0);
    pb_u64(b, n);
    pb_u64(b, offset);
    pb_u64(b, 99);
    pb_u32(b, cpu);
    pb_u32(b, tid);
    pb_u32(b, cpu);
    pb_u32(b, 0);
    pb_end(b);
    pb_bytes(b, bytes, n);
}

static inline ssize_t pb_read(void *context, void *buffer, size_t size, uint64_t offset)
{
    const struct perf_bytes *b = context;

    if (offset >= b->n)
        return 0;
    if (size > b->n - offset)
        size = (size_t)(b->n - offset);
    memcpy(buffer, b->v + offset, size);
    return (ssize_t)size;
}

#endif
