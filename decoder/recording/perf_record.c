/* SPDX-License-Identifier: MIT */
/* One perf.data record: from its bytes to its fields. Every length is checked against what is there. */
#include "decoder/recording/perf_data.h"

#include <linux/perf_event.h>

#define SAMPLE_RAW_FIELDS                                                                                              \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |                 \
     PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

uint64_t etch_perf_time_to_tsc(const struct etch_perf_time_conv *conv, uint64_t ns)
{
    uint64_t t = ns - conv->zero;

    if (conv->mult == 0 || conv->shift > 63)
        return 0;
    return ((t / conv->mult) << conv->shift) +
           (uint64_t)(((unsigned __int128)(t % conv->mult) << conv->shift) / conv->mult);
}

uint64_t etch_perf_tsc_to_time(const struct etch_perf_time_conv *conv, uint64_t tsc)
{
    if (conv->mult == 0 || conv->shift > 63)
        return 0;
    return conv->zero + (uint64_t)(((unsigned __int128)tsc * conv->mult) >> conv->shift);
}

static const struct etch_perf_attr *attr_by_id(const struct etch_perf_file *file, uint64_t id)
{
    for (size_t i = 0; i < file->attrs.n; i++)
        for (size_t k = 0; k < file->attrs.v[i].ids.n; k++)
            if (file->attrs.v[i].ids.v[k] == id)
                return &file->attrs.v[i];
    return NULL;
}

/* Which event a kernel's record belongs to: by its id where it has one at a place that does not depend on the event
 * (the end of a record, the beginning of a sample). Records that perf itself made up have id 0: the first event's
 * layout. */
static const struct etch_perf_attr *attr_of(const struct etch_perf_file *file, const struct etch_perf_record *record)
{
    size_t n = (size_t)record->size - 8;
    const struct etch_perf_attr *first = file->attrs.n ? &file->attrs.v[0] : NULL;
    const struct etch_perf_attr *found;

    if (!first || file->attrs.n == 1 || !(first->sample_type & PERF_SAMPLE_IDENTIFIER) || n < 8)
        return first;
    found = attr_by_id(file, perf_u64(record->type == PERF_RECORD_SAMPLE ? record->body : record->body + n - 8));
    return found ? found : first;
}

/* The fields that trail every kernel record but samples. Returns the bytes they take, or -1. */
static ssize_t decode_sample_id(struct etch_perf_record *record)
{
    struct etch_perf_sample_id *s = &record->sample;
    uint64_t bits = record->attr ? record->attr->sample_type : 0;
    size_t n = (size_t)record->size - 8, size = 0;
    const uint8_t *p;

    if (!record->attr || !record->attr->sample_id_all)
        return 0;
    bits &= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
            PERF_SAMPLE_IDENTIFIER;
    size = (size_t)__builtin_popcountll(bits) * 8;
    if (size > n)
        return -1;
    p = record->body + n - size;
    if (bits & PERF_SAMPLE_TID) {
        s->has_tid = true;
        s->pid = perf_u32(p);
        s->tid = perf_u32(p + 4);
        p += 8;
    }
    if (bits & PERF_SAMPLE_TIME) {
        s->has_time = true;
        s->time = perf_u64(p);
        p += 8;
    }
    if (bits & PERF_SAMPLE_ID) {
        s->id = perf_u64(p);
        p += 8;
    }
    if (bits & PERF_SAMPLE_STREAM_ID)
        p += 8;
    if (bits & PERF_SAMPLE_CPU) {
        s->has_cpu = true;
        s->cpu = perf_u32(p);
        p += 8;
    }
    if (bits & PERF_SAMPLE_IDENTIFIER)
        s->id = perf_u64(p);
    return (ssize_t)size;
}

/* Takes the next u64 of a sample where its bit is set. */
static bool take(const uint8_t **p, const uint8_t *end, uint64_t bits, uint64_t bit, uint64_t *value)
{
    if (!(bits & bit))
        return true;
    if (end - *p < 8)
        return false;
    *value = perf_u64(*p);
    *p += 8;
    return true;
}

/* A sample matters only where it is a tracepoint's (sched_switch): its identity and its raw bytes. */
static int decode_sample(struct etch_perf_record *record)
{
    const uint8_t *p = record->body, *end = p + record->size - 8;
    uint64_t bits = record->attr ? record->attr->sample_type : 0;
    struct etch_perf_sample_id *s = &record->sample;
    uint64_t ignored = 0, tid = 0, cpu = 0;

    if (!take(&p, end, bits, PERF_SAMPLE_IDENTIFIER, &s->id) || !take(&p, end, bits, PERF_SAMPLE_IP, &ignored) ||
        !take(&p, end, bits, PERF_SAMPLE_TID, &tid) || !take(&p, end, bits, PERF_SAMPLE_TIME, &s->time) ||
        !take(&p, end, bits, PERF_SAMPLE_ADDR, &ignored) || !take(&p, end, bits, PERF_SAMPLE_ID, &s->id) ||
        !take(&p, end, bits, PERF_SAMPLE_STREAM_ID, &ignored) || !take(&p, end, bits, PERF_SAMPLE_CPU, &cpu) ||
        !take(&p, end, bits, PERF_SAMPLE_PERIOD, &ignored))
        return -1;
    s->has_tid = bits & PERF_SAMPLE_TID;
    s->has_time = bits & PERF_SAMPLE_TIME;
    s->has_cpu = bits & PERF_SAMPLE_CPU;
    s->pid = (uint32_t)tid;
    s->tid = (uint32_t)(tid >> 32);
    s->cpu = (uint32_t)cpu;
    /* What stands between these fields and the raw bytes has a length of its own; sched_switch has none of it. */
    if ((bits & ~(uint64_t)SAMPLE_RAW_FIELDS & (PERF_SAMPLE_RAW | (PERF_SAMPLE_RAW - 1))) != PERF_SAMPLE_RAW)
        return 0;
    if (end - p < 4 || perf_u32(p) > (size_t)(end - p - 4))
        return -1;
    record->raw.size = perf_u32(p);
    record->raw.bytes = p + 4;
    return 0;
}

/* A string that ends within `n` bytes; NULL where it does not. */
static const char *text(const uint8_t *p, size_t n)
{
    return n && memchr(p, 0, n) ? (const char *)p : NULL;
}

static int decode_mmap(struct etch_perf_record *record, size_t n)
{
    const uint8_t *b = record->body;
    struct etch_perf_mmap *m = &record->mmap;

    if (n < 33)
        return -1;
    m->pid = perf_u32(b);
    m->tid = perf_u32(b + 4);
    m->start = perf_u64(b + 8);
    m->size = perf_u64(b + 16);
    m->offset = perf_u64(b + 24);
    m->prot = record->misc & PERF_RECORD_MISC_MMAP_DATA ? 3 : 5;
    m->path = text(b + 32, n - 32);
    return m->path && m->start + m->size >= m->start ? 0 : -1;
}

static int decode_mmap2(struct etch_perf_record *record, size_t n)
{
    const uint8_t *b = record->body;
    struct etch_perf_mmap *m = &record->mmap;

    if (n < 65 || decode_mmap(record, n) < 0)
        return -1;
    m->prot = perf_u32(b + 56);
    m->path = text(b + 64, n - 64);
    if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        m->build_id_size = b[32];
        m->build_id = b + 36;
        if (m->build_id_size > PERF_BUILD_ID_BYTES)
            return -1;
    }
    return m->path ? 0 : -1;
}

static int decode_task(struct etch_perf_record *record, size_t n)
{
    const uint8_t *b = record->body;

    if (n < 24)
        return -1;
    record->task =
        (struct etch_perf_task){perf_u32(b), perf_u32(b + 4), perf_u32(b + 8), perf_u32(b + 12), perf_u64(b + 16)};
    return 0;
}

static int decode_pair(struct etch_perf_record *record, size_t n)
{
    if (n < 8)
        return -1;
    record->other.pid = perf_u32(record->body);
    record->other.tid = perf_u32(record->body + 4);
    return 0;
}

static int decode_kernel(struct etch_perf_record *record, size_t n)
{
    const uint8_t *b = record->body;

    switch (record->type) {
    case PERF_RECORD_MMAP:
        return decode_mmap(record, n);
    case PERF_RECORD_MMAP2:
        return decode_mmap2(record, n);
    case PERF_RECORD_COMM:
        if (decode_pair(record, n) < 0)
            return -1;
        record->comm.name = text(b + 8, n - 8);
        return record->comm.name ? 0 : -1;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return decode_task(record, n);
    case PERF_RECORD_AUX:
        if (n < 24)
            return -1;
        record->aux.offset = perf_u64(b);
        record->aux.size = perf_u64(b + 8);
        record->aux.flags = perf_u64(b + 16);
        return 0;
    case PERF_RECORD_ITRACE_START:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return decode_pair(record, n);
    case PERF_RECORD_LOST:
        if (n < 16)
            return -1;
        record->lost.id = perf_u64(b);
        record->lost.count = perf_u64(b + 8);
        return 0;
    case PERF_RECORD_LOST_SAMPLES:
    case PERF_RECORD_AUX_OUTPUT_HW_ID:
        if (n < 8)
            return -1;
        record->lost.id = perf_u64(b);
        if (record->type == PERF_RECORD_LOST_SAMPLES) {
            record->lost.count = record->lost.id;
            record->lost.id = 0;
        }
        return 0;
    default:
        return 0;
    }
}

static int decode_auxtrace_info(struct etch_perf_record *record, size_t n)
{
    struct etch_perf_auxtrace_info *info = &record->auxtrace_info;
    size_t filter;

    memset(info, 0, sizeof(*info));
    if (n < 8)
        return -1;
    info->type = perf_u32(record->body);
    info->filter = "";
    info->n = (n - 8) / 8 < PERF_PT_WORDS ? (n - 8) / 8 : PERF_PT_WORDS;
    for (size_t i = 0; i < info->n; i++)
        info->words[i] = perf_u64(record->body + 8 + 8 * i);
    filter = (size_t)info->words[PERF_PT_FILTER_STR_LEN];
    if (info->n == PERF_PT_WORDS && filter > 0 && filter <= n - 8 - 8 * PERF_PT_WORDS)
        info->filter = text(record->body + 8 + 8 * PERF_PT_WORDS, n - 8 - 8 * PERF_PT_WORDS);
    return info->filter ? 0 : -1;
}

static int decode_auxtrace(struct etch_perf_record *record, size_t n)
{
    const uint8_t *b = record->body;

    if (n < PERF_AUXTRACE_RECORD_SIZE - 8)
        return -1;
    record->auxtrace = (struct etch_perf_auxtrace){
        .size = perf_u64(b),
        .offset = perf_u64(b + 8),
        .reference = perf_u64(b + 16),
        .idx = perf_u32(b + 24),
        .tid = perf_u32(b + 28),
        .cpu = perf_u32(b + 32),
        .where = record->where + record->size,
    };
    return 0;
}

static int decode_user(struct etch_perf_record *record, size_t n)
{
    const uint8_t *b = record->body;

    switch (record->type) {
    case PERF_USER_AUXTRACE_INFO:
        return decode_auxtrace_info(record, n);
    case PERF_USER_AUXTRACE:
        return decode_auxtrace(record, n);
    case PERF_USER_TIME_CONV:
        if (n < 24)
            return -1;
        record->time_conv = (struct etch_perf_time_conv){perf_u64(b), perf_u64(b + 8), perf_u64(b + 16)};
        return 0;
    default:
        return 0;
    }
}

int etch_perf_record_decode(const struct etch_perf_file *file, struct etch_perf_record *record)
{
    size_t n = (size_t)record->size - 8;
    ssize_t trailer;

    if (record->type >= PERF_USER_HEADER_ATTR)
        return decode_user(record, n);
    record->attr = attr_of(file, record);
    if (record->type == PERF_RECORD_SAMPLE)
        return decode_sample(record);
    trailer = decode_sample_id(record);
    return trailer < 0 ? -1 : decode_kernel(record, n - (size_t)trailer);
}
