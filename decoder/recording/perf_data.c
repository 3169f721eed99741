/* SPDX-License-Identifier: MIT */
/* The frame of a perf.data: header, events, feature sections, and the walk over its records, compressed ones included.
 */
#include "decoder/recording/perf_data.h"

#include "base/bound.h"
#include "decoder/recording/perf_features.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <zstd.h>

#define WINDOW_SIZE (1u << 18)  /* bytes of the file in memory at a time */
#define FEATURE_MAX (16u << 20) /* no feature section that is wanted is larger */
#define ATTRS_MAX 4096u
#define IDS_MAX (1u << 20) /* over all events */

struct walk {
    const struct etch_perf_source *source;
    const char *name;
    struct etch_perf_file *file;
    etch_perf_visitor *visit;
    void *context;
    struct etch_error *err;
    uint8_t *window;
    uint64_t window_start;
    size_t window_size;
    size_t ids;
    ZSTD_DStream *zstd;
    uint64_t unpacked_total;
    ETCH_ARRAY(uint8_t) unpacked; /* the part of a record that a COMPRESSED record ended in */
    size_t unpacked_n;
};

static int no_memory(struct walk *w)
{
    return etch_error_set(w->err, "cannot read %s: out of memory", w->name);
}

/* Reads exactly `size` bytes. Returns 1, 0 where the file ends before, -1 with the error set. */
static int read_exactly(struct walk *w, void *buffer, size_t size, uint64_t offset)
{
    uint8_t *to = buffer;

    while (size > 0) {
        ssize_t n = w->source->read(w->source->context, to, size, offset);

        if (n < 0)
            return etch_error_set_errno(w->err, (int)-n, "cannot read %s", w->name);
        if (n == 0)
            return 0;
        to += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 1;
}

/* A view of [offset, offset + size) in the window, size at most 64 KiB. NULL with *status 0 (cut) or -1 (error). */
static const uint8_t *view(struct walk *w, uint64_t offset, size_t size, int *status)
{
    uint64_t left = offset < w->source->size ? w->source->size - offset : 0;

    *status = 0;
    if (size > left)
        return NULL;
    if (offset < w->window_start || offset + size > w->window_start + w->window_size) {
        size_t n = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;

        w->window_size = 0;
        *status = read_exactly(w, w->window, n, offset);
        if (*status <= 0)
            return NULL;
        w->window_start = offset;
        w->window_size = n;
    }
    *status = 1;
    return w->window + (offset - w->window_start);
}

/* ---- Events ---- */

/* `bytes` are a perf_event_attr as long as its writer knew it. */
static int add_attr(struct walk *w, const uint8_t *bytes, size_t size)
{
    struct etch_perf_attr attr = {0};

    if (size < 64 || w->file->attrs.n >= ATTRS_MAX)
        return etch_error_set(w->err, "%s: its list of events is damaged", w->name);
    attr.type = perf_u32(bytes);
    attr.config = perf_u64(bytes + 8);
    attr.sample_type = perf_u64(bytes + 24);
    attr.read_format = perf_u64(bytes + 32);
    attr.flags = perf_u64(bytes + 40);
    attr.sample_id_all = attr.flags >> 18 & 1;
    return etch_array_push(&w->file->attrs, attr) ? 0 : no_memory(w);
}

static int add_ids(struct walk *w, struct etch_perf_attr *attr, const uint8_t *bytes, size_t n)
{
    if (n > IDS_MAX - w->ids)
        return etch_error_set(w->err, "%s: its list of event ids is damaged", w->name);
    w->ids += n;
    for (size_t i = 0; i < n; i++)
        if (!etch_array_push(&attr->ids, perf_u64(bytes + 8 * i)))
            return no_memory(w);
    return 0;
}

static int read_attr_ids(struct walk *w, uint64_t offset, uint64_t size)
{
    struct etch_perf_attr *attr = &w->file->attrs.v[w->file->attrs.n - 1];

    for (uint64_t done = 0; done + 8 <= size;) {
        uint64_t chunk = size - done < 65536 ? (size - done) / 8 * 8 : 65536;
        int status;
        const uint8_t *ids = view(w, offset + done, (size_t)chunk, &status);

        if (!ids && status == 0)
            return etch_error_set(w->err, "%s ends before its event ids", w->name);
        if (!ids || add_ids(w, attr, ids, (size_t)chunk / 8) < 0)
            return -1;
        done += chunk;
    }
    return 0;
}

static int read_attrs(struct walk *w, uint64_t entry, uint64_t offset, uint64_t size)
{
    if (entry < 64 + 16 || entry > 4096 || offset > w->source->size || size > w->source->size - offset)
        return etch_error_set(w->err, "%s: its list of events is damaged", w->name);
    for (uint64_t at = 0; at + entry <= size; at += entry) {
        uint8_t bytes[4096];
        int status = read_exactly(w, bytes, (size_t)entry, offset + at);

        if (status == 0)
            return etch_error_set(w->err, "%s ends before its list of events", w->name);
        if (status < 0 || add_attr(w, bytes, (size_t)entry - 16) < 0 ||
            read_attr_ids(w, perf_u64(bytes + entry - 16), perf_u64(bytes + entry - 8)) < 0)
            return -1;
    }
    return 0;
}

/* HEADER_ATTR of a pipe: the attr, as long as it says, and its ids. */
static int read_pipe_attr(struct walk *w, const uint8_t *body, size_t n)
{
    size_t size = n >= 64 ? perf_u32(body + 4) : 0;

    if (size < 64 || size > n) {
        w->file->damaged++;
        return 0;
    }
    if (add_attr(w, body, size) < 0)
        return -1;
    return add_ids(w, &w->file->attrs.v[w->file->attrs.n - 1], body + size, (n - size) / 8);
}

/* ---- Features ---- */

static int read_feature(struct walk *w, uint64_t feature, uint64_t offset, uint64_t size)
{
    uint8_t *bytes;
    int status;

    if (!etch_perf_feature_wanted(feature))
        return 0;
    if (size > FEATURE_MAX || offset > w->source->size || size > w->source->size - offset) {
        w->file->damaged++;
        return 0;
    }
    bytes = malloc(size ? (size_t)size : 1);
    if (!bytes)
        return no_memory(w);
    status = read_exactly(w, bytes, (size_t)size, offset);
    if (status == 0 || (status > 0 && !etch_perf_feature_take(w->file, feature, bytes, (size_t)size)))
        w->file->damaged++;
    free(bytes);
    return status < 0 ? -1 : 0;
}

/* One section's place for each bit that is set, behind the records. A file whose perf was killed has none. */
static int read_features(struct walk *w, const uint8_t *bits, uint64_t offset)
{
    for (unsigned feature = 0; feature < 256; feature++) {
        uint8_t section[16];
        int status;

        if (!(bits[feature / 8] >> (feature % 8) & 1))
            continue;
        status = read_exactly(w, section, sizeof(section), offset);
        if (status <= 0) {
            w->file->cut = true;
            return status;
        }
        if (read_feature(w, feature, perf_u64(section), perf_u64(section + 8)) < 0)
            return -1;
        offset += sizeof(section);
    }
    return 0;
}

/* ---- Records ---- */

static int walk_record(struct walk *w, const uint8_t *bytes, uint64_t where);

/* Hands on every whole record of what has been unpacked and keeps the rest. */
static int walk_unpacked(struct walk *w, uint64_t where)
{
    size_t at = 0;
    int status = 0;

    while (status == 0 && w->unpacked_n - at >= 8) {
        uint16_t size = perf_u16(w->unpacked.v + at + 6);
        uint32_t type = perf_u32(w->unpacked.v + at);

        if (size < 8 || type == PERF_USER_COMPRESSED || type == PERF_USER_COMPRESSED2) {
            w->file->damaged++;
            at = w->unpacked_n;
            break;
        }
        if (size > w->unpacked_n - at)
            break;
        status = walk_record(w, w->unpacked.v + at, where);
        at += size;
    }
    memmove(w->unpacked.v, w->unpacked.v + at, w->unpacked_n - at);
    w->unpacked_n -= at;
    return status;
}

/* perf -z: one zstd stream over all COMPRESSED records; a record may begin in one and end in the next. */
static int walk_compressed(struct walk *w, const uint8_t *bytes, size_t n, uint64_t where)
{
    ZSTD_inBuffer in = {bytes, n, 0};
    int status = 0;

    if (!w->zstd && !(w->zstd = ZSTD_createDStream()))
        return no_memory(w);
    if (!etch_array_reserve(&w->unpacked, (size_t)2 * 65536))
        return no_memory(w);
    while (status == 0) {
        ZSTD_outBuffer out = {w->unpacked.v, w->unpacked.capacity, w->unpacked_n};
        size_t code = ZSTD_decompressStream(w->zstd, &out, &in);
        bool full = out.pos == out.size;

        if (ZSTD_isError(code)) {
            w->file->damaged++;
            w->unpacked_n = 0;
            ZSTD_DCtx_reset(w->zstd, ZSTD_reset_session_only);
            return 0;
        }
        w->unpacked_total += out.pos - w->unpacked_n;
        w->unpacked_n = out.pos;
        if (w->unpacked_total > etch_bound(ETCH_BOUND_MEMORY, where + n)) { /* most of it is kept */
            w->file->damaged++;
            w->unpacked_n = 0;
            return 0;
        }
        status = walk_unpacked(w, where);
        if (in.pos == in.size && !full)
            break;
    }
    return status;
}

static int walk_feature_record(struct walk *w, const uint8_t *body, size_t n)
{
    if (n < 8 || !etch_perf_feature_take(w->file, perf_u64(body), body + 8, n - 8))
        w->file->damaged++;
    return 0;
}

static int walk_record(struct walk *w, const uint8_t *bytes, uint64_t where)
{
    struct etch_perf_record record = {
        .type = perf_u32(bytes),
        .misc = perf_u16(bytes + 4),
        .size = perf_u16(bytes + 6),
        .where = where,
        .body = bytes + 8,
    };
    size_t n = (size_t)record.size - 8;

    switch (record.type) {
    case PERF_USER_HEADER_ATTR:
        return read_pipe_attr(w, record.body, n);
    case PERF_USER_FEATURE:
        return walk_feature_record(w, record.body, n);
    case PERF_USER_BUILD_ID:
        if (!etch_perf_build_id_take(w->file, record.misc, record.body, n))
            w->file->damaged++;
        return 0;
    case PERF_USER_COMPRESSED:
        return walk_compressed(w, record.body, n, where);
    case PERF_USER_COMPRESSED2:
        if (n < 8 || perf_u64(record.body) > n - 8)
            return w->file->damaged++, 0;
        return walk_compressed(w, record.body + 8, (size_t)perf_u64(record.body), where);
    default:
        break;
    }
    if (etch_perf_record_decode(w->file, &record) < 0) {
        w->file->damaged++;
        return 0;
    }
    return w->visit(w->context, w->file, &record);
}

/* Bytes that follow a record without being part of it. */
static uint64_t trailing_bytes(const struct walk *w, const uint8_t *bytes)
{
    uint32_t type = perf_u32(bytes);
    uint16_t size = perf_u16(bytes + 6);

    if (type == PERF_USER_AUXTRACE && size >= 16)
        return perf_u64(bytes + 8);
    if (type == PERF_USER_TRACING_DATA && w->file->pipe && size >= 12)
        return ((uint64_t)perf_u32(bytes + 8) + 7) & ~(uint64_t)7;
    return 0;
}

static int walk_records(struct walk *w, uint64_t offset, uint64_t end)
{
    while (offset < end) {
        uint64_t follow;
        uint16_t size;
        int status;
        const uint8_t *bytes = end - offset < 8 ? (status = 0, NULL) : view(w, offset, 8, &status);

        if (!bytes) {
            w->file->cut = true;
            return status;
        }
        size = perf_u16(bytes + 6);
        if (size < 8) {
            w->file->damaged++;
            w->file->cut = true;
            return 0;
        }
        bytes = size > end - offset ? (status = 0, NULL) : view(w, offset, size, &status);
        if (!bytes) {
            w->file->cut = true;
            return status;
        }
        follow = trailing_bytes(w, bytes);
        status = walk_record(w, bytes, offset);
        if (status != 0)
            return status;
        offset += size;
        if (follow > end - offset) {
            w->file->cut = true;
            return 0;
        }
        offset += follow;
    }
    return 0;
}

/* ---- The file ---- */

static int read_file_layout(struct walk *w)
{
    uint8_t h[PERF_FILE_HEADER_SIZE];
    int status = read_exactly(w, h, sizeof(h), 0);
    uint64_t data, size;

    if (status == 0)
        return etch_error_set(w->err, "%s ends inside its header", w->name);
    if (status < 0)
        return -1;
    data = perf_u64(h + 40);
    size = perf_u64(h + 48);
    if (h[72 + PERF_FEATURE_DIR_FORMAT / 8] >> (PERF_FEATURE_DIR_FORMAT % 8) & 1) {
        etch_error_set(w->err, "%s belongs to a recording in several files", w->name);
        return etch_error_advise(w->err, "record without --threads");
    }
    if (read_attrs(w, perf_u64(h + 16), perf_u64(h + 24), perf_u64(h + 32)) < 0)
        return -1;
    if (data > w->source->size)
        return etch_error_set(w->err, "%s ends before its records", w->name);
    if (size == 0 || size > w->source->size - data) {
        /* perf writes the size last: it was killed, or the file was cut. What is there is still good. */
        w->file->cut = true;
        size = w->source->size - data;
    } else if (read_features(w, h + 72, data + size) < 0) {
        return -1;
    }
    return walk_records(w, data, data + size);
}

static int read_any_layout(struct walk *w)
{
    uint8_t h[PERF_PIPE_HEADER_SIZE];
    int status = read_exactly(w, h, sizeof(h), 0);

    if (status < 0)
        return -1;
    if (status > 0 && perf_u64(h) == PERF_FILE_MAGIC_SWAPPED) {
        etch_error_set(w->err, "%s was recorded on a big-endian machine, which has no Intel PT", w->name);
        return -1;
    }
    if (status == 0 || perf_u64(h) != PERF_FILE_MAGIC)
        return etch_error_set(w->err, "%s is not a perf.data of perf 3.2 or later", w->name);
    if (perf_u64(h + 8) == PERF_PIPE_HEADER_SIZE) {
        w->file->pipe = true;
        return walk_records(w, PERF_PIPE_HEADER_SIZE, w->source->size);
    }
    if (perf_u64(h + 8) < PERF_FILE_HEADER_SIZE)
        return etch_error_set(w->err, "%s: its header says that it has %llu bytes", w->name,
                              (unsigned long long)perf_u64(h + 8));
    return read_file_layout(w);
}

int etch_perf_data_read(const struct etch_perf_source *source, const char *name, struct etch_perf_file *file,
                        etch_perf_visitor *visit, void *context, struct etch_error *err)
{
    struct walk w = {.source = source, .name = name, .file = file, .visit = visit, .context = context, .err = err};
    int status;

    memset(file, 0, sizeof(*file));
    w.window = malloc(WINDOW_SIZE);
    status = w.window ? read_any_layout(&w) : no_memory(&w);
    free(w.window);
    ZSTD_freeDStream(w.zstd);
    etch_array_free(&w.unpacked);
    return status;
}

void etch_perf_file_release(struct etch_perf_file *file)
{
    for (size_t i = 0; i < file->attrs.n; i++)
        etch_array_free(&file->attrs.v[i].ids);
    for (size_t i = 0; i < file->build_ids.n; i++)
        free(file->build_ids.v[i].path);
    for (size_t i = 0; i < file->cmdline.n; i++)
        free(file->cmdline.v[i]);
    etch_array_free(&file->attrs);
    etch_array_free(&file->build_ids);
    etch_array_free(&file->cmdline);
    free(file->hostname);
    free(file->osrelease);
    free(file->arch);
    free(file->cpudesc);
    free(file->cpuid);
    memset(file, 0, sizeof(*file));
}
