/* SPDX-License-Identifier: MIT */
/* A recorded run as the decoder sees it, wherever it came from: a bundle of etch's, a perf.data, an LLDB trace bundle.
 * Everything but the control-flow bytes is in memory. The control-flow bytes are read when needed, a window at a
 * time. */
#ifndef ETCH_DECODER_RECORDING_H
#define ETCH_DECODER_RECORDING_H

#include "base/array.h"
#include "base/bound.h"
#include "base/error.h"
#include "proto/etch.pb-c.h"
#include "proto/ledger.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A piece of a stream that is there: [offset, offset + size). If the next piece begins further on, the bytes between
 * were lost; a hole of one byte stands for a hole of unknown size. The last piece may have no bytes: the loss is then
 * at the end. */
struct etch_piece {
    uint64_t offset;
    uint64_t size;
    uint64_t where; /* the loader's own: a place in its file */
};

/* One sequence of control-flow bytes, of a CPU or of a thread. */
struct etch_stream {
    const Etch__Stream *about;
    ETCH_ARRAY(struct etch_piece) pieces; /* in order, without overlap */
    struct etch_recording *recording;
};

/* Losses that the recorder reported itself. */
struct etch_recording {
    char *path;
    Etch__Source source;
    Etch__Host *host; /* these four NULL where the file has none */
    Etch__Program *program;
    Etch__Failure *failure;
    Etch__Outcome *outcome;
    ETCH_ARRAY(Etch__Image *) images; /* by pid, start, mapped_tsc */
    ETCH_ARRAY(Etch__Thread *) threads;
    ETCH_ARRAY(Etch__Clock *) clocks;
    ETCH_ARRAY(Etch__Watch *) watches;
    ETCH_ARRAY(Etch__Loss *) losses;
    ETCH_ARRAY(Etch__Switch) switches; /* by CPU, then time */
    ETCH_ARRAY(Etch__Access) accesses; /* as recorded */
    ETCH_ARRAY(Etch__Sync) syncs;
    ETCH_ARRAY(struct etch_stream) streams;
    bool cut;                  /* the file ends before its writer was done */
    uint64_t damaged;          /* records that could not be read */
    struct etch_ledger ledger; /* of a bundle's records; see etch_recording_lost() */
    struct etch_budget budget; /* of what is in memory; records that it refused are left out, and a loss */
    bool unwound;              /* the failure's frames and exception are as good as they can be made */
    bool settled;              /* the accesses are, too */

    /* The loader's: reads up to `size` bytes of a stream's piece from `skip` bytes into it. Returns how many, or
     * -errno. May be called from several threads at once. */
    ssize_t (*read)(const struct etch_stream *stream, const struct etch_piece *piece, uint64_t skip, void *buffer,
                    size_t size);
    void (*close)(struct etch_recording *recording);
    void *loader;
};

/* Opens any of the three by what the file holds: .etch, perf.data (file or pipe layout), trace.json or the folder it is
 * in. Returns 0, or -1 with `err` set. */
int etch_recording_open(struct etch_recording **recording, const char *path, struct etch_error *err);

void etch_recording_free(struct etch_recording *recording);

/* Counts the losses of the recording by cause, as etch info and etch record report them. Returns their sum. */
uint64_t etch_recording_lost(struct etch_recording *recording, uint64_t counts[ETCH_LOSS_CAUSES]);

/* Closes the file: the streams cannot be read any more. All else stays. */
void etch_recording_close_streams(struct etch_recording *recording);

/* Reads up to `size` bytes of a stream at `offset`. Stops at a hole. Returns how many, 0 at a hole or the end, -errno.
 * May be called from several threads at once. */
ssize_t etch_stream_read(const struct etch_stream *stream, uint64_t offset, void *buffer, size_t size);

/* The offset behind the stream's last piece. */
uint64_t etch_stream_end(const struct etch_stream *stream);

/* The mapping that holds an address of a process (0: of any process). If an exec replaced one mapping by another, the
 * newest one. NULL for none. */
const Etch__Image *etch_recording_image_at(const struct etch_recording *recording, uint32_t pid, uint64_t address);

#endif
