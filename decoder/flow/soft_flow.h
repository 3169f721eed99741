/* SPDX-License-Identifier: MIT */
/* From a software recorder's ring to executed steps. Each byte gives the path through a segment. The map turns a path
 * into nodes. A walk over the machine code, from each node's mark to the next, turns nodes into blocks. A block goes
 * into the step buffer only when a record proves that execution got there. If records, map and code contradict each
 * other, the step buffer gets a loss, and the replay goes on at the next record that gives the thread's position.
 * Private to decoder/. */
#ifndef ETCH_DECODER_FLOW_SOFT_FLOW_H
#define ETCH_DECODER_FLOW_SOFT_FLOW_H

#include "decoder/flow/soft_map.h"
#include "decoder/flow/step_buffer.h"

struct etch_soft_input {
    const uint8_t *bytes; /* chunks, one behind the other, in any order */
    size_t size;
    uint32_t pid;
    const struct etch_soft_map *map;
    /* The thread's frames at the end, innermost first: an instruction, then return addresses. NULL and 0 where they are
     * not known. */
    const uint64_t *frames;
    size_t n_frames;
    bool failed;             /* the first frame is an instruction that did not finish */
    struct etch_death death; /* of the thread */
};

/* Replays all of `input` into `buffer`. */
void etch_soft_decode(const struct etch_soft_input *input, struct etch_blocks *blocks, struct etch_step_buffer *buffer);

#endif
