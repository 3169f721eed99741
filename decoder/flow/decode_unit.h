/* SPDX-License-Identifier: MIT */
/* A decode unit: bytes of one stream that can be decoded by themselves; and the cursor that cuts a stream into such
 * units. */
#ifndef ETCH_DECODER_FLOW_DECODE_UNIT_H
#define ETCH_DECODER_FLOW_DECODE_UNIT_H

#include "decoder/flow/pt_flow.h"
#include "decoder/flow/soft_map.h"

#define ETCH_DECODE_UNIT_SIZE ((size_t)32 << 10) /* at least, where the stream has as much */
#define ETCH_DECODE_UNIT_TAIL ((size_t)4 << 10)  /* of the successor: its PSB, and a timing packet with luck */

/* Bytes from a PSB up to another, and all that is known before they are decoded. */
struct etch_decode_unit {
    const struct etch_stream *stream;
    uint32_t pid, tid, cpu;
    struct etch_pt_input input;
    ETCH_ARRAY(uint8_t) bytes; /* behind input */
    ETCH_ARRAY(struct etch_pt_region) regions;
    /* A software recorder's stream is one unit, and `bytes` are its chunks. NULL: the stream is Intel PT. */
    const struct etch_soft_map *soft;
    const uint64_t *frames; /* of that thread at the end, as in etch_soft_input */
    size_t n_frames;
    bool failed;
    struct etch_step_buffer_event lead; /* kind ETCH_STEP_LOSS: bytes before this unit are missing or of no use */
};

void etch_decode_unit_release(struct etch_decode_unit *unit);

/* A cursor goes along one stream. */
struct etch_stream_cursor {
    const struct etch_stream *stream;
    uint64_t at;
    bool at_psb;                        /* a PSB is at `at` */
    bool tail;                          /* the cursor began in the middle on purpose: the bytes before are no loss */
    struct etch_step_buffer_event lead; /* of the next unit */
};

/* Goes to the begin of a stream. */
void etch_stream_cursor_set(struct etch_stream_cursor *c, const struct etch_stream *stream);

/* Fills the next unit of the stream. Returns 1, 0 at the stream's end, -1 with `err` set. */
int etch_stream_cursor_next(struct etch_stream_cursor *c, struct etch_decode_unit *unit, struct etch_error *err);

/* Makes the unit's bytes, which begin at `at`, reach `size`, if the stream has as many before a hole. */
int etch_decode_unit_read(const struct etch_stream *stream, uint64_t at, struct etch_decode_unit *unit, size_t size,
                          struct etch_error *err);

/* Fills everything but the bytes, for a unit that begins at the cursor. */
void etch_decode_unit_fill(const struct etch_stream_cursor *c, struct etch_decode_unit *unit);

#endif
