/* SPDX-License-Identifier: MIT */
/* Writing and reading files of records: bundles (.etch), slices, plans and sketches alike.
 *
 * The writer hands each record to the kernel at once. For a reader, a record is there as a whole or not at all: the
 * records written before the writer was killed stay readable. The reader takes one record at a time, in bounded memory
 * whatever the file's size. The reader trusts no byte, passes over unknown records, and finds the next record behind
 * damage. */
#ifndef ETCH_PROTO_BUNDLE_H
#define ETCH_PROTO_BUNDLE_H

#include "base/error.h"
#include "proto/etch.pb-c.h"
#include "proto/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- Writing ---- */

struct etch_bundle_writer;

/* Makes `path` and writes the file header. An older etch file of that name is kept as NAME.old until the new file is
 * whole. A file that etch did not write is refused (base/output.h). Returns 0, or -1 with `err` set. */
int etch_bundle_create(struct etch_bundle_writer **writer, const char *path, struct etch_error *err);

/* The same on an open descriptor, which the writer then owns. `name` is for messages. */
int etch_bundle_create_fd(struct etch_bundle_writer **writer, int fd, const char *name, struct etch_error *err);

/* Appends one record; `record` stays the caller's. Returns 0, or -1 with `err` set. After an error (a full disk, say)
 * the records before are whole, and every later call fails with the same error. */
int etch_bundle_write(struct etch_bundle_writer *writer, const Etch__Record *record, struct etch_error *err);

/* Appends `size` bytes of stream `stream`, which start at `offset` within it, cut into chunks. As etch_bundle_write().
 */
int etch_bundle_write_flow(struct etch_bundle_writer *writer, uint32_t stream, uint64_t offset, const void *data,
                           size_t size, struct etch_error *err);

/* Sees every record before it is written. */
struct etch_bundle_filter {
    /* The record to write in its place, valid until the next call; NULL: no memory, and nothing is written. */
    const Etch__Record *(*pass)(void *context, const Etch__Record *record);
    /* One more record, before the end of a finished file; NULL: none. */
    const Etch__Record *(*last)(void *context);
    void *context;
};

void etch_bundle_set_filter(struct etch_bundle_writer *writer, const struct etch_bundle_filter *filter);

/* With `hurry`, records are stored without compression: larger, but several times as fast, for a writer that falls
 * behind. */
void etch_bundle_hurry(struct etch_bundle_writer *writer, bool hurry);

/* Bytes in the file so far. */
uint64_t etch_bundle_written(const struct etch_bundle_writer *writer);

/* The losses of the file so far. After a failure, they include the records that could not be written. */
struct etch_ledger *etch_bundle_ledger(struct etch_bundle_writer *writer);

/* Why nothing more could be written; NULL: nothing failed. */
const struct etch_error *etch_bundle_failure(const struct etch_bundle_writer *writer);

/* Marks the file as complete, brings it to the disk, and closes it. The writer must still be freed. */
int etch_bundle_finish(struct etch_bundle_writer *writer, struct etch_error *err);

/* Closes the file as it is. NULL is fine. */
void etch_bundle_writer_free(struct etch_bundle_writer *writer);

/* The same for a file that is not worth keeping: removes the file, and puts back the file that it would have
 * replaced. */
void etch_bundle_discard(struct etch_bundle_writer *writer);

/* ---- Reading ---- */

struct etch_bundle_reader;

/* Gives bytes to the reader: fills `buffer` with up to `size` bytes. Returns how many, 0 at the end, -errno on
 * error. */
typedef ssize_t etch_bundle_source(void *context, void *buffer, size_t size);

/* Opens a file, or standard input if `path` is "-". Returns 0, or -1 with `err` set if the file is not an etch file or
 * has a later format. A file cut inside its own header opens: the first read reports that it holds no records. */
int etch_bundle_open(struct etch_bundle_reader **reader, const char *path, struct etch_error *err);

/* The same over bytes from anywhere. */
int etch_bundle_open_source(struct etch_bundle_reader **reader, etch_bundle_source *source, void *context,
                            const char *name, struct etch_error *err);

void etch_bundle_reader_free(struct etch_bundle_reader *reader);

/* Unpacks only records of these kinds (ETCH__RECORD__BODY_...). Other records are still checked and reported, but not
 * unpacked. Without this call all records are unpacked. */
void etch_bundle_want(struct etch_bundle_reader *reader, const Etch__Record__BodyCase *kinds, size_t n);

enum etch_bundle_event {
    ETCH_BUNDLE_RECORD,  /* a whole record */
    ETCH_BUNDLE_DAMAGED, /* bytes that are no record; reading goes on behind them */
    ETCH_BUNDLE_END,     /* the file is complete */
    ETCH_BUNDLE_CUT,     /* the file ends before its writer was done */
    ETCH_BUNDLE_FAILED,  /* could not read on: `err` says why */
};

struct etch_bundle_item {
    enum etch_bundle_event event;
    uint64_t index;             /* of this record among all, damaged ones included; the first is 0 */
    uint64_t offset;            /* in the file */
    uint64_t size;              /* bytes in the file, frame included; of the tail after ETCH_BUNDLE_CUT */
    uint64_t raw_size;          /* of the record before compression */
    uint32_t kind;              /* field number in etch.Record; 0 where it cannot be known */
    const Etch__Record *record; /* valid until the next call; NULL for kinds unknown or not wanted */
    size_t memory;              /* that the record takes */
    char damage[160];           /* why, for ETCH_BUNDLE_DAMAGED */
};

/* Reads the next item. After END, CUT or FAILED every further call returns the same. */
enum etch_bundle_event etch_bundle_next(struct etch_bundle_reader *reader, struct etch_bundle_item *item,
                                        struct etch_error *err);

/* Reads the bytes of the Flow record whose frame stands at `offset` of `fd`, out of turn; free() them. Makes the same
 * checks as etch_bundle_next(). Returns 0 or -errno: -EBADMSG if no whole Flow stands there. May be called from any
 * thread. */
int etch_bundle_read_flow(int fd, uint64_t offset, uint8_t **data, size_t *size);

/* The format's version as the file has it. */
void etch_bundle_version(const struct etch_bundle_reader *reader, uint16_t *major, uint16_t *minor);

/* "flow" for ETCH__RECORD__BODY_FLOW; NULL for a kind that this code does not know. */
const char *etch_record_kind_name(uint32_t kind);

#endif
