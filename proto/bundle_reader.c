/* SPDX-License-Identifier: MIT */
/* The reading half of bundle.h. A window slides over the file; at its head stands the next frame. Work is linear in the
 * file's size whatever it holds: a header that is right is believed and its payload passed over as one, a header that
 * is wrong moves the window by the bytes up to the next marker. */
#include "proto/bundle.h"
#include "proto/frame.h"

#include "base/bound.h"
#include "base/crc32c.h"
#include "proto/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define READ_SIZE ((size_t)256 << 10)
#define ARENA_LIMIT ((size_t)4 * ETCH_RECORD_MAX)

struct etch_bundle_reader {
    etch_bundle_source *source;
    void *context;
    int fd; /* -1 where the source is the caller's */
    char *name;
    uint16_t major, minor;
    bool header_cut;

    uint8_t *window;
    size_t capacity;
    size_t start, end; /* the unread part of the window */
    uint64_t offset;   /* in the file, of `start` */
    bool at_eof;
    int read_error; /* errno, reported when the window has run dry */

    uint64_t index;
    uint64_t whole; /* records read whole */
    bool damage_seen;
    bool end_seen;
    enum etch_bundle_event state; /* ETCH_BUNDLE_RECORD while there may be more */
    struct etch_bundle_item last;
    struct etch_error failure;

    bool filtered;
    uint64_t wanted; /* bit per kind below 64 */
    ZSTD_DCtx *zstd;
    uint64_t unpacked; /* bytes, of all records so far */
    uint8_t *raw;
    size_t raw_capacity;
    struct etch_arena arena;
    bool starved; /* no memory for a record */
};

const char *etch_record_kind_name(uint32_t kind)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(&etch__record__descriptor, kind);

    return field ? field->name : NULL;
}

static ssize_t read_fd(void *context, void *buffer, size_t size)
{
    ssize_t got;

    do
        got = read(*(int *)context, buffer, size);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* Brings at least `want` bytes into the window if the file has them. Returns how many there are. */
static size_t fill(struct etch_bundle_reader *r, size_t want)
{
    if (r->end - r->start >= want)
        return r->end - r->start;
    if (r->start && (r->start + want > r->capacity || r->start == r->end)) {
        memmove(r->window, r->window + r->start, r->end - r->start);
        r->end -= r->start;
        r->start = 0;
    }
    if (r->start + want > r->capacity) {
        size_t room = r->start + want + READ_SIZE;
        uint8_t *grown = realloc(r->window, room);

        if (!grown) {
            r->read_error = ENOMEM;
            r->at_eof = true;
            return r->end - r->start;
        }
        r->window = grown;
        r->capacity = room;
    }
    while (!r->at_eof && r->end - r->start < want) {
        ssize_t got = r->source(r->context, r->window + r->end, r->capacity - r->end);

        if (got <= 0) {
            r->read_error = got < 0 ? (int)-got : 0;
            r->at_eof = true;
        } else {
            r->end += (size_t)got;
        }
    }
    return r->end - r->start;
}

static void consume(struct etch_bundle_reader *r, size_t size)
{
    r->start += size;
    r->offset += size;
}

static int refuse(struct etch_bundle_reader *r, enum etch_file_header_verdict verdict, struct etch_error *err)
{
    if (verdict == ETCH_FILE_HEADER_FUTURE) {
        etch_error_set(err, "%s has format %u, and this etch reads up to %u", r->name, r->major, ETCH_FORMAT_MAJOR);
        return etch_error_advise(err, "use the etch that wrote it, or a newer one");
    }
    etch_error_set(err, "%s is not an etch file", r->name);
    return etch_error_advise(err, "give it a .etch file written by etch record");
}

static int open_header(struct etch_bundle_reader *r, struct etch_error *err)
{
    size_t got = fill(r, ETCH_FILE_HEADER_SIZE);
    enum etch_file_header_verdict verdict;

    if (r->read_error)
        return etch_error_set_errno(err, r->read_error, "cannot read %s", r->name);
    if (got == 0) { /* nothing to compare; a writer killed at birth leaves this */
        r->header_cut = true;
        return 0;
    }
    verdict = etch_file_header_decode(r->window, got, &r->major, &r->minor);
    if (verdict == ETCH_FILE_HEADER_CUT) {
        r->header_cut = true;
        return 0;
    }
    if (verdict != ETCH_FILE_HEADER_OK)
        return refuse(r, verdict, err);
    consume(r, ETCH_FILE_HEADER_SIZE);
    return 0;
}

static struct etch_bundle_reader *reader_new(const char *name)
{
    struct etch_bundle_reader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->fd = -1;
    r->name = strdup(name);
    r->zstd = ZSTD_createDCtx();
    etch_arena_init(&r->arena, ARENA_LIMIT);
    if (!r->name || !r->zstd) {
        etch_bundle_reader_free(r);
        return NULL;
    }
    return r;
}

int etch_bundle_open_source(struct etch_bundle_reader **reader, etch_bundle_source *source, void *context,
                            const char *name, struct etch_error *err)
{
    struct etch_bundle_reader *r = reader_new(name);

    if (!r)
        return etch_error_set_errno(err, ENOMEM, "cannot read %s", name);
    r->source = source;
    r->context = context;
    if (open_header(r, err) < 0) {
        etch_bundle_reader_free(r);
        return -1;
    }
    *reader = r;
    return 0;
}

int etch_bundle_open(struct etch_bundle_reader **reader, const char *path, struct etch_error *err)
{
    bool piped = strcmp(path, "-") == 0;
    struct etch_bundle_reader *r = reader_new(piped ? "standard input" : path);

    if (!r)
        return etch_error_set_errno(err, ENOMEM, "cannot read %s", path);
    r->fd = piped ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0) {
        etch_error_set_errno(err, errno, "cannot open %s", r->name);
        etch_bundle_reader_free(r);
        return -1;
    }
    r->source = read_fd;
    r->context = &r->fd;
    if (open_header(r, err) < 0) {
        etch_bundle_reader_free(r);
        return -1;
    }
    *reader = r;
    return 0;
}

void etch_bundle_reader_free(struct etch_bundle_reader *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    etch_arena_release(&r->arena);
    ZSTD_freeDCtx(r->zstd);
    free(r->raw);
    free(r->window);
    free(r->name);
    free(r);
}

void etch_bundle_want(struct etch_bundle_reader *r, const Etch__Record__BodyCase *kinds, size_t n)
{
    r->filtered = true;
    for (size_t i = 0; i < n; i++)
        r->wanted |= (uint64_t)1 << kinds[i];
}

void etch_bundle_version(const struct etch_bundle_reader *r, uint16_t *major, uint16_t *minor)
{
    *major = r->major;
    *minor = r->minor;
}

static bool is_wanted(const struct etch_bundle_reader *r, uint32_t kind)
{
    /* The reader needs END for itself. */
    return !r->filtered || kind == ETCH__RECORD__BODY_END || (kind < 64 && (r->wanted >> kind & 1));
}

static void damaged(struct etch_bundle_reader *r, struct etch_bundle_item *item, const char *why)
{
    r->damage_seen = true;
    item->event = ETCH_BUNDLE_DAMAGED;
    item->record = NULL;
    snprintf(item->damage, sizeof(item->damage), "%s", why);
}

/* There is no memory for the record, which may be a good one: reading cannot go on. */
static void starve(struct etch_bundle_reader *r, struct etch_bundle_item *item)
{
    item->event = ETCH_BUNDLE_FAILED;
    item->record = NULL;
    r->starved = true;
}

/* Undoes the compression. Returns the serialised record, or NULL with the reason in `why`. */
static const uint8_t *inflate(struct etch_bundle_reader *r, const struct etch_frame_header *header,
                              const uint8_t *payload, const char **why)
{
    size_t got;

    if (!(header->flags & ETCH_FRAME_ZSTD)) {
        *why = "its two lengths differ";
        return header->length == header->raw_length ? payload : NULL;
    }
    if (r->unpacked + header->raw_length > etch_bound(ETCH_BOUND_UNPACKED, r->offset)) {
        *why = "the file unpacks to more than the reader allows (ETCH_MAX_UNPACKED)";
        return NULL;
    }
    r->unpacked += header->raw_length;
    if (header->raw_length > r->raw_capacity) {
        uint8_t *grown = realloc(r->raw, header->raw_length);

        if (!grown) {
            r->starved = true;
            return NULL;
        }
        r->raw = grown;
        r->raw_capacity = header->raw_length;
    }
    got = ZSTD_decompressDCtx(r->zstd, r->raw, header->raw_length, payload, header->length);
    *why = "its compressed bytes do not unpack";
    return ZSTD_isError(got) || got != header->raw_length ? NULL : r->raw;
}

/* A frame whose checksums are right: unpacks it if it is wanted and known. */
static void take_record(struct etch_bundle_reader *r, const struct etch_frame_header *header, const uint8_t *payload,
                        struct etch_bundle_item *item)
{
    const uint8_t *raw;
    const char *why;
    Etch__Record *record;

    if (!etch_record_kind_name(header->kind) || !is_wanted(r, header->kind))
        return;
    if (header->flags & ~ETCH_FRAME_ZSTD) /* packed in a way of some later version: pass over it */
        return;
    raw = inflate(r, header, payload, &why);
    if (!raw) {
        if (r->starved)
            starve(r, item);
        else
            damaged(r, item, why);
        return;
    }
    record = etch__record__unpack(&r->arena.allocator, header->raw_length, raw);
    if (!record && r->arena.starved)
        starve(r, item);
    else if (!record)
        damaged(r, item,
                r->arena.exhausted ? "it unpacks to more than the reader allows" : "it is no record of etch's");
    else if (record->body_case != (Etch__Record__BodyCase)header->kind)
        damaged(r, item, "its kind is not the one its frame names");
    else
        item->record = record;
    item->memory = r->arena.taken;
}

/* No frame stands at the window's head: moves to where the next one does, or to the end of the file. */
static void skip_damage(struct etch_bundle_reader *r, struct etch_bundle_item *item)
{
    damaged(r, item, "no frame begins here");
    do {
        size_t got;
        const uint8_t *next;
        struct etch_frame_header header;

        consume(r, 1);
        got = fill(r, ETCH_FRAME_HEADER_SIZE);
        if (got < ETCH_FRAME_HEADER_SIZE) {
            consume(r, got);
            break;
        }
        got -= ETCH_FRAME_HEADER_SIZE - 1;
        next = memchr(r->window + r->start, (int)(ETCH_FRAME_MARKER & 0xff), got);
        consume(r, next ? (size_t)(next - (r->window + r->start)) : got - 1);
        if (next && etch_frame_header_decode(r->window + r->start, &header) == 0)
            break;
    } while (true);
    item->size = r->offset - item->offset;
}

/* The file ends inside a frame, or right behind one without an end record. */
static void stop_cut(struct etch_bundle_reader *r, struct etch_bundle_item *item, size_t tail)
{
    item->event = ETCH_BUNDLE_CUT;
    item->size = tail;
    consume(r, tail);
}

static void take_end(struct etch_bundle_reader *r, struct etch_bundle_item *item)
{
    r->end_seen = true;
    /* Without its record (packed in a way of some later version) it still ends the file; only its count is not known.
     */
    if (item->record && item->record->end->records != r->whole && !r->damage_seen) {
        damaged(r, item, "the end record counts other records than there are");
        return;
    }
    if (fill(r, 1) > 0) {
        damaged(r, item, "bytes follow the end record");
        while (fill(r, 1) > 0)
            consume(r, r->end - r->start);
        item->size = r->offset - item->offset;
        return;
    }
    item->event = ETCH_BUNDLE_END;
}

static void next_frame(struct etch_bundle_reader *r, struct etch_bundle_item *item)
{
    size_t got = fill(r, ETCH_FRAME_HEADER_SIZE);
    struct etch_frame_header header;
    const uint8_t *payload;
    size_t size;

    if (got == 0 && r->end_seen) {
        item->event = ETCH_BUNDLE_END;
        return;
    }
    if (got < ETCH_FRAME_HEADER_SIZE) {
        stop_cut(r, item, got);
        return;
    }
    if (etch_frame_header_decode(r->window + r->start, &header) < 0) {
        skip_damage(r, item);
        return;
    }
    size = ETCH_FRAME_HEADER_SIZE + header.length;
    got = fill(r, size);
    item->kind = header.kind;
    item->size = size;
    item->raw_size = header.raw_length;
    if (got < size) {
        stop_cut(r, item, got);
        return;
    }
    payload = r->window + r->start + ETCH_FRAME_HEADER_SIZE;
    consume(r, size);
    if (etch_crc32c(0, payload, header.length) != header.payload_crc)
        damaged(r, item, "its checksum does not match");
    else
        take_record(r, &header, payload, item);
    if (item->event == ETCH_BUNDLE_RECORD && header.kind == ETCH__RECORD__BODY_END)
        take_end(r, item);
    else if (item->event == ETCH_BUNDLE_RECORD)
        r->whole++;
}

enum etch_bundle_event etch_bundle_next(struct etch_bundle_reader *r, struct etch_bundle_item *item,
                                        struct etch_error *err)
{
    if (r->state != ETCH_BUNDLE_RECORD) {
        *item = r->last;
        *err = r->failure;
        return r->state;
    }
    etch_arena_reset(&r->arena);
    memset(item, 0, sizeof(*item));
    item->index = r->index;
    item->offset = r->offset;
    if (r->header_cut)
        stop_cut(r, item, fill(r, 1));
    else
        next_frame(r, item);
    if (r->starved)
        r->read_error = ENOMEM;
    if ((item->event == ETCH_BUNDLE_CUT || r->starved) && r->read_error) {
        item->event = ETCH_BUNDLE_FAILED;
        etch_error_set_errno(&r->failure, r->read_error, "cannot read %s", r->name);
        *err = r->failure;
    }
    if (item->event == ETCH_BUNDLE_RECORD || item->event == ETCH_BUNDLE_DAMAGED)
        r->index++;
    else
        r->last = *item;
    r->state = item->event == ETCH_BUNDLE_DAMAGED ? ETCH_BUNDLE_RECORD : item->event;
    return item->event;
}
