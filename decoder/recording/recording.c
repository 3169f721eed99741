/* SPDX-License-Identifier: MIT */
/* Opens a recording by what the file holds, and reads its streams by offset. */
#include "decoder/recording.h"
#include "decoder/recording/loaders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum file_kind { FILE_BUNDLE, FILE_PERF, FILE_LLDB, FILE_UNKNOWN };

static bool begins_with(const uint8_t *bytes, size_t n, const char *magic, size_t size)
{
    return n > 0 && memcmp(bytes, magic, n < size ? n : size) == 0;
}

/* JSON: a brace is the first thing that is not space. */
static bool is_json(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", bytes[i]))
            return bytes[i] == '{';
    return false;
}

static int look(const char *path, enum file_kind *kind, struct etch_error *err)
{
    uint8_t bytes[64];
    struct stat st;
    ssize_t n;
    int fd;

    /* A pipe cannot be looked at first: the only kind that comes through one is perf's. */
    if (strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))) {
        *kind = FILE_PERF;
        return 0;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        *kind = FILE_LLDB;
        return 0;
    }
    n = pread(fd, bytes, sizeof(bytes), 0);
    close(fd);
    if (n < 0)
        return etch_error_set_errno(err, errno, "cannot read %s", path);
    if (n >= 8 && begins_with(bytes, (size_t)n, "PERFILE2", 8))
        *kind = FILE_PERF;
    else if (is_json(bytes, (size_t)n))
        *kind = FILE_LLDB;
    else
        *kind = FILE_BUNDLE; /* whose loader says so if it is not */
    return 0;
}

static int load(struct etch_recording *r, const char *path, struct etch_error *err)
{
    enum file_kind kind;

    if (look(path, &kind, err) < 0)
        return -1;
    switch (kind) {
    case FILE_PERF:
        return etch_recording_load_perf(r, path, err);
    case FILE_LLDB:
        return etch_recording_load_lldb(r, path, err);
    default:
        return etch_recording_load_bundle(r, path, err);
    }
}

int etch_recording_open(struct etch_recording **recording, const char *path, struct etch_error *err)
{
    struct etch_recording *r = calloc(1, sizeof(*r));

    if (!r || !(r->path = strdup(path))) {
        free(r);
        return etch_error_set_errno(err, ENOMEM, "cannot open %s", path);
    }
    if (load(r, path, err) < 0) {
        etch_recording_free(r);
        return -1;
    }
    for (size_t i = 0; i < r->streams.n; i++) /* the array may have moved while it grew */
        r->streams.v[i].recording = r;
    *recording = r;
    return 0;
}

static void free_message(void *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}

#define free_messages(array)                                                                                           \
    do {                                                                                                               \
        for (size_t i_ = 0; i_ < (array)->n; i_++)                                                                     \
            free_message((array)->v[i_]);                                                                              \
        etch_array_free(array);                                                                                        \
    } while (0)

static ssize_t read_closed(const struct etch_stream *stream, const struct etch_piece *piece, uint64_t skip,
                           void *buffer, size_t size)
{
    (void)stream;
    (void)piece;
    (void)skip;
    (void)buffer;
    (void)size;
    return -EBADF;
}

void etch_recording_close_streams(struct etch_recording *r)
{
    if (r->close)
        r->close(r);
    r->close = NULL;
    r->loader = NULL;
    r->read = read_closed;
}

void etch_recording_free(struct etch_recording *r)
{
    if (!r)
        return;
    if (r->close)
        r->close(r);
    free_message(r->host);
    free_message(r->program);
    free_message(r->failure);
    free_message(r->outcome);
    free_messages(&r->images);
    free_messages(&r->threads);
    free_messages(&r->clocks);
    free_messages(&r->watches);
    free_messages(&r->losses);
    etch_ledger_release(&r->ledger);
    for (size_t i = 0; i < r->streams.n; i++) {
        free_message((void *)(uintptr_t)r->streams.v[i].about);
        etch_array_free(&r->streams.v[i].pieces);
    }
    for (size_t i = 0; i < r->accesses.n; i++) {
        free(r->accesses.v[i].registers);
        free(r->accesses.v[i].stack.data);
        free(r->accesses.v[i].callers);
    }
    etch_array_free(&r->streams);
    etch_array_free(&r->switches);
    etch_array_free(&r->accesses);
    for (size_t i = 0; i < r->syncs.n; i++)
        free(r->syncs.v[i].callers);
    etch_array_free(&r->syncs);
    free(r->path);
    free(r);
}

/* The piece that holds `offset`, or NULL. */
static const struct etch_piece *find_piece(const struct etch_stream *stream, uint64_t offset)
{
    size_t lo = 0, hi = stream->pieces.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct etch_piece *piece = &stream->pieces.v[mid];

        if (offset < piece->offset)
            hi = mid;
        else if (offset - piece->offset >= piece->size)
            lo = mid + 1;
        else
            return piece;
    }
    return NULL;
}

ssize_t etch_stream_read(const struct etch_stream *stream, uint64_t offset, void *buffer, size_t size)
{
    size_t got = 0;

    while (got < size) {
        const struct etch_piece *piece = find_piece(stream, offset + got);
        uint64_t skip, rest;
        ssize_t n;

        if (!piece)
            break;
        skip = offset + got - piece->offset;
        rest = piece->size - skip;
        n = stream->recording->read(stream, piece, skip, (uint8_t *)buffer + got,
                                    rest < size - got ? (size_t)rest : size - got);
        if (n < 0)
            return got ? (ssize_t)got : n;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

uint64_t etch_stream_end(const struct etch_stream *stream)
{
    const struct etch_piece *last = stream->pieces.n ? &stream->pieces.v[stream->pieces.n - 1] : NULL;

    return last ? last->offset + last->size : 0;
}

const Etch__Image *etch_recording_image_at(const struct etch_recording *recording, uint32_t pid, uint64_t address)
{
    const Etch__Image *found = NULL;

    for (size_t i = 0; i < recording->images.n; i++) {
        const Etch__Image *image = recording->images.v[i];

        if ((pid && image->pid && image->pid != pid) || address < image->start || address - image->start >= image->size)
            continue;
        if (!found || image->mapped_tsc >= found->mapped_tsc)
            found = image;
    }
    return found;
}

uint64_t etch_recording_lost(struct etch_recording *r, uint64_t counts[ETCH_LOSS_CAUSES])
{
    uint64_t total = etch_ledger_sum(&r->ledger, counts);

    if (!r->ledger.begun) { /* no bundle: all is in the losses */
        for (size_t i = 0; i < r->losses.n; i++)
            counts[(unsigned)r->losses.v[i]->cause % ETCH_LOSS_CAUSES]++;
        total += r->losses.n;
    }
    counts[ETCH__LOSS_CAUSE__LOSS_CUT] += r->cut;
    counts[ETCH__LOSS_CAUSE__LOSS_DAMAGED] += r->damaged;
    counts[ETCH__LOSS_CAUSE__LOSS_LIMIT] += r->budget.refused;
    return total + r->cut + r->damaged + r->budget.refused;
}
