/* SPDX-License-Identifier: MIT */
/* The writing half of bundle.h. One write call a record, nothing kept back: what the kernel has, a reader gets. */
#include "proto/bundle.h"
#include "proto/frame.h"

#include "base/crc32c.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#define COMPRESSION_LEVEL 1
#define COMPRESSION_PAYS 256u /* records below this are stored as they are */

struct etch_bundle_writer {
    struct etch_output *output; /* NULL: closed */
    int fd;
    char *name;
    uint64_t written;
    uint64_t records;
    bool failed, hurry;
    struct etch_error failure;
    struct etch_ledger ledger;
    ZSTD_CCtx *zstd;
    uint8_t *raw; /* the serialised record */
    size_t raw_capacity;
    uint8_t *packed;
    size_t packed_capacity;
    struct etch_bundle_filter filter;
};

static int out_of_memory(struct etch_error *err)
{
    return etch_error_set_errno(err, ENOMEM, "cannot write a bundle");
}

/* Writes all of both pieces, however often the kernel takes only a part. */
static int write_both(struct etch_bundle_writer *w, const void *head, size_t head_size, const void *body,
                      size_t body_size)
{
    struct iovec pieces[2] = {{(void *)(uintptr_t)head, head_size}, {(void *)(uintptr_t)body, body_size}};
    struct iovec *piece = pieces;
    int n = body_size ? 2 : 1;

    while (n) {
        ssize_t done = writev(w->fd, piece, n);

        if (done < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        w->written += (uint64_t)done;
        while (n && (size_t)done >= piece->iov_len) {
            done -= (ssize_t)piece->iov_len;
            piece++;
            n--;
        }
        if (n) {
            piece->iov_base = (char *)piece->iov_base + done;
            piece->iov_len -= (size_t)done;
        }
    }
    return 0;
}

static Etch__LossCause cause_of(int errnum)
{
    if (errnum == ENOMEM)
        return ETCH__LOSS_CAUSE__LOSS_NO_MEMORY;
    return errnum == ENOSPC || errnum == EDQUOT ? ETCH__LOSS_CAUSE__LOSS_NO_SPACE : ETCH__LOSS_CAUSE__LOSS_CUT;
}

static int remember_failure(struct etch_bundle_writer *w, int errnum, struct etch_error *err)
{
    etch_error_set_errno(&w->failure, errnum, "cannot write %s", w->name);
    if (errnum == ENOSPC || errnum == EDQUOT)
        etch_error_advise(&w->failure, "free some disk space, or choose another place with -o");
    if (!w->failed)
        etch_ledger_add(&w->ledger, cause_of(errnum), 1);
    w->failed = true;
    *err = w->failure;
    return -1;
}

static int create(struct etch_bundle_writer **writer, struct etch_output *output, struct etch_error *err)
{
    struct etch_bundle_writer *w = calloc(1, sizeof(*w));
    uint8_t header[ETCH_FILE_HEADER_SIZE];
    int status;

    if (!w) {
        etch_output_discard(output);
        return out_of_memory(err);
    }
    w->output = output;
    w->fd = etch_output_descriptor(output);
    w->name = strdup(etch_output_path(output));
    w->zstd = ZSTD_createCCtx();
    if (!w->name || !w->zstd) {
        etch_bundle_discard(w);
        return out_of_memory(err);
    }
    etch_file_header_encode(header);
    status = write_both(w, header, sizeof(header), NULL, 0);
    if (status < 0) {
        remember_failure(w, -status, err);
        etch_bundle_discard(w);
        return -1;
    }
    *writer = w;
    return 0;
}

int etch_bundle_create_fd(struct etch_bundle_writer **writer, int fd, const char *name, struct etch_error *err)
{
    struct etch_output *output;

    return etch_output_fd(&output, fd, name, err) < 0 ? -1 : create(writer, output, err);
}

int etch_bundle_create(struct etch_bundle_writer **writer, const char *path, struct etch_error *err)
{
    uint8_t header[ETCH_FILE_HEADER_SIZE];
    struct etch_output *output;

    etch_file_header_encode(header);
    if (etch_output_recording(&output, path, header, sizeof(ETCH_FILE_MAGIC) - 1, err) < 0)
        return -1;
    return create(writer, output, err);
}

static bool grow(uint8_t **buffer, size_t *capacity, size_t want)
{
    uint8_t *grown;

    if (want <= *capacity)
        return true;
    grown = realloc(*buffer, want);
    if (!grown)
        return false;
    *buffer = grown;
    *capacity = want;
    return true;
}

/* Compresses w->raw into w->packed. Returns the packed size, or 0 where that does not pay. */
static size_t compress_raw(struct etch_bundle_writer *w, size_t raw_size)
{
    size_t packed;

    if (w->hurry || raw_size < COMPRESSION_PAYS || !grow(&w->packed, &w->packed_capacity, ZSTD_compressBound(raw_size)))
        return 0;
    packed = ZSTD_compressCCtx(w->zstd, w->packed, w->packed_capacity, w->raw, raw_size, COMPRESSION_LEVEL);
    return ZSTD_isError(packed) || packed >= raw_size ? 0 : packed;
}

static int write_passed(struct etch_bundle_writer *w, const Etch__Record *record, struct etch_error *err)
{
    size_t raw_size = etch__record__get_packed_size(record);
    uint8_t header_bytes[ETCH_FRAME_HEADER_SIZE];
    struct etch_frame_header header;
    const uint8_t *payload;
    size_t packed;
    int status;

    if (w->failed) {
        *err = w->failure;
        return -1;
    }
    if (raw_size > ETCH_RECORD_MAX) {
        etch_ledger_add(&w->ledger, ETCH__LOSS_CAUSE__LOSS_LIMIT, 1);
        return etch_error_set(err, "cannot write %s: a %s record of %zu bytes is beyond the format's limit of %u",
                              w->name, etch_record_kind_name(record->body_case), raw_size, ETCH_RECORD_MAX);
    }
    if (!grow(&w->raw, &w->raw_capacity, raw_size))
        return remember_failure(w, ENOMEM, err);
    etch__record__pack(record, w->raw);
    packed = compress_raw(w, raw_size);
    payload = packed ? w->packed : w->raw;
    header = (struct etch_frame_header){
        .kind = (uint16_t)record->body_case,
        .flags = packed ? ETCH_FRAME_ZSTD : 0,
        .length = (uint32_t)(packed ? packed : raw_size),
        .raw_length = (uint32_t)raw_size,
    };
    header.payload_crc = etch_crc32c(0, payload, header.length);
    etch_frame_header_encode(&header, header_bytes);
    status = write_both(w, header_bytes, sizeof(header_bytes), payload, header.length);
    if (status < 0)
        return remember_failure(w, -status, err);
    w->records++;
    etch_ledger_take(&w->ledger, record);
    return 0;
}

int etch_bundle_write(struct etch_bundle_writer *w, const Etch__Record *record, struct etch_error *err)
{
    if (w->filter.pass)
        record = w->filter.pass(w->filter.context, record);
    if (record)
        return write_passed(w, record, err);
    if (w->failed) {
        *err = w->failure;
        return -1;
    }
    return remember_failure(w, ENOMEM, err); /* the bundle lacks a record from here on, and is not whole */
}

void etch_bundle_set_filter(struct etch_bundle_writer *w, const struct etch_bundle_filter *filter)
{
    w->filter = *filter;
}

static int write_last(struct etch_bundle_writer *w, struct etch_error *err)
{
    const Etch__Record *record = w->filter.last ? w->filter.last(w->filter.context) : NULL;

    return record ? write_passed(w, record, err) : 0;
}

int etch_bundle_write_flow(struct etch_bundle_writer *w, uint32_t stream, uint64_t offset, const void *data,
                           size_t size, struct etch_error *err)
{
    const uint8_t *p = data;

    while (size) {
        Etch__Flow flow = ETCH__FLOW__INIT;
        Etch__Record record = ETCH__RECORD__INIT;

        flow.stream = stream;
        flow.offset = offset;
        flow.data.data = (uint8_t *)(uintptr_t)p;
        flow.data.len = size < ETCH_CHUNK_SIZE ? size : ETCH_CHUNK_SIZE;
        record.body_case = ETCH__RECORD__BODY_FLOW;
        record.flow = &flow;
        if (etch_bundle_write(w, &record, err) < 0)
            return -1;
        p += flow.data.len;
        offset += flow.data.len;
        size -= flow.data.len;
    }
    return 0;
}

void etch_bundle_hurry(struct etch_bundle_writer *w, bool hurry)
{
    w->hurry = hurry;
}

uint64_t etch_bundle_written(const struct etch_bundle_writer *w)
{
    return w->written;
}

/* Removes the end record again: a file that did not reach the disk must not read as complete. */
static void uncomplete(const struct etch_bundle_writer *w, uint64_t before)
{
    struct stat st;
    int fd = open(w->name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == w->written &&
        ftruncate(fd, (off_t)before) < 0)
        unlink(w->name);
    close(fd);
}

int etch_bundle_finish(struct etch_bundle_writer *w, struct etch_error *err)
{
    Etch__End end = ETCH__END__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    uint64_t before = w->written;
    struct etch_output *output = w->output;

    if (write_last(w, err) < 0)
        return -1;
    end.records = w->records;
    record.body_case = ETCH__RECORD__BODY_END;
    record.end = &end;
    if (write_passed(w, &record, err) < 0)
        return -1;
    w->output = NULL;
    w->fd = -1;
    if (etch_output_finish(output, &w->failure) == 0)
        return 0;
    uncomplete(w, before);
    w->failed = true;
    etch_ledger_add(&w->ledger, ETCH__LOSS_CAUSE__LOSS_CUT, 1);
    *err = w->failure;
    return -1;
}

struct etch_ledger *etch_bundle_ledger(struct etch_bundle_writer *w)
{
    return &w->ledger;
}

const struct etch_error *etch_bundle_failure(const struct etch_bundle_writer *w)
{
    return w->failed ? &w->failure : NULL;
}

static void release(struct etch_bundle_writer *w)
{
    ZSTD_freeCCtx(w->zstd);
    free(w->packed);
    free(w->raw);
    free(w->name);
    etch_ledger_release(&w->ledger);
    free(w);
}

void etch_bundle_writer_free(struct etch_bundle_writer *w)
{
    if (!w)
        return;
    etch_output_leave(w->output);
    release(w);
}

void etch_bundle_discard(struct etch_bundle_writer *w)
{
    if (!w)
        return;
    etch_output_discard(w->output);
    release(w);
}
