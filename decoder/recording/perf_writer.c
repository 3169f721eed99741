/* SPDX-License-Identifier: MIT */
/* Bytes and records of a perf.data in the making. */
#include "decoder/recording/perf_writer.h"

#include <string.h>

int etch_perf_writer_no_memory(struct etch_perf_writer *w)
{
    return etch_error_set(w->err, "cannot write a perf.data: out of memory");
}

uint64_t etch_perf_writer_time(const struct etch_perf_writer *w, uint64_t tsc)
{
    return tsc ? etch_perf_tsc_to_time(&w->conv, tsc) : 0;
}

int etch_perf_writer_put(struct etch_perf_writer *w, const void *bytes, size_t size)
{
    int status = w->sink ? w->sink->write(w->sink->context, bytes, size) : 0;

    if (status < 0)
        return etch_error_set_errno(w->err, -status, "cannot write the perf.data");
    w->at += size;
    return 0;
}

void etch_perf_writer_add_bytes(struct etch_perf_writer *w, const void *bytes, size_t size)
{
    if (!etch_array_reserve(&w->record, w->record.n + size))
        return;
    memcpy(w->record.v + w->record.n, bytes, size);
    w->record.n += size;
}

void etch_perf_writer_add_u32(struct etch_perf_writer *w, uint32_t value)
{
    etch_perf_writer_add_bytes(w, &value, sizeof(value));
}

void etch_perf_writer_add_u64(struct etch_perf_writer *w, uint64_t value)
{
    etch_perf_writer_add_bytes(w, &value, sizeof(value));
}

/* With its end, filled up to a multiple of `align` bytes. */
void etch_perf_writer_add_text(struct etch_perf_writer *w, const char *text, size_t align)
{
    static const char zeroes[STRING_ALIGN];
    size_t n = strlen(text);

    etch_perf_writer_add_bytes(w, text, n);
    etch_perf_writer_add_bytes(w, zeroes, align - n % align);
}

/* No record that is begun here outgrows this: paths are cut, and a path so long cannot be opened anyway. */
bool etch_perf_writer_begin(struct etch_perf_writer *w, uint32_t type, uint16_t misc)
{
    w->record.n = 0;
    if (!etch_array_reserve(&w->record, 65536))
        return false;
    etch_perf_writer_add_u32(w, type);
    etch_perf_writer_add_u32(w, misc);
    return true;
}

int etch_perf_writer_end(struct etch_perf_writer *w)
{
    uint16_t size = (uint16_t)w->record.n;

    memcpy(w->record.v + 6, &size, sizeof(size));
    return etch_perf_writer_put(w, w->record.v, w->record.n);
}

/* What the sample_id_all of our events promises behind each kernel record. */
int etch_perf_writer_end_kernel(struct etch_perf_writer *w, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu,
                                uint64_t id)
{
    etch_perf_writer_add_u32(w, pid);
    etch_perf_writer_add_u32(w, tid);
    etch_perf_writer_add_u64(w, time);
    etch_perf_writer_add_u64(w, cpu);
    etch_perf_writer_add_u64(w, id);
    return etch_perf_writer_end(w);
}

const Etch__PtConfig *etch_perf_writer_pt_config(const struct etch_perf_writer *w)
{
    static const Etch__PtConfig unknown = ETCH__PT_CONFIG__INIT;

    return w->recording->streams.n && w->recording->streams.v[0].about->pt ? w->recording->streams.v[0].about->pt
                                                                           : &unknown;
}
