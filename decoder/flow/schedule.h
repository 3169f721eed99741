/* SPDX-License-Identifier: MIT */
/* Cuts the recording's streams into stretches that can be decoded one by one, in any order and at the same time, and
 * hands them out thread by thread, in the order in which each thread ran. Where they are cut depends on the bytes only.
 */
#ifndef ETCH_DECODER_FLOW_SCHEDULE_H
#define ETCH_DECODER_FLOW_SCHEDULE_H

#include "decoder/flow/pt_flow.h"
#include "decoder/flow/soft_map.h"

/* Something to decode: bytes from a PSB up to another, and what is known before decoding them. */
struct etch_decode_unit {
    const struct etch_stream *stream;
    uint32_t pid, tid, cpu;
    struct etch_pt_input input;
    ETCH_ARRAY(uint8_t) bytes; /* behind input */
    ETCH_ARRAY(struct etch_pt_region) regions;
    const struct etch_soft_map
        *soft;              /* of a software recorder's stream, which is one stretch: `bytes` are its chunks */
    const uint64_t *frames; /* of that thread at the end, as in etch_soft_input */
    size_t n_frames;
    bool failed;
    struct etch_step_buffer_event lead; /* kind ETCH_STEP_LOSS: bytes before this stretch are missing or of no use */
};

void etch_decode_unit_release(struct etch_decode_unit *stretch);

struct etch_schedule;

int etch_schedule_new(struct etch_schedule **plan, struct etch_recording *recording, const struct etch_code *code,
                      const struct etch_steps_options *options, struct etch_error *err);
void etch_schedule_free(struct etch_schedule *plan);

/* The plan's rows: a row is one thread's way through the recording, in the order in which etch_schedule_next() goes. */
size_t etch_schedule_rows(const struct etch_schedule *plan);

/* Restricts the plan to the end of one row: about `window` KiB of it. Returns whether that is all of the row. */
bool etch_schedule_tail(struct etch_schedule *plan, size_t row, uint64_t window);

/* Fills the next stretch, reusing its room. Returns 1, 0 when there are no more, -1 with `err` set. */
int etch_schedule_next(struct etch_schedule *plan, struct etch_decode_unit *stretch, struct etch_error *err);

#endif
