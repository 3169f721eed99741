/* SPDX-License-Identifier: MIT */
/* From PT packets and code to what ran. Packet-driven: an instruction goes into the step buffer only when a later
 * packet proves that execution got past it, so nothing is reported that did not run; where packets and code contradict
 * each other, or code is missing, the step buffer says so and the walk goes on at the next packet that names an address
 * beyond doubt. */
#ifndef ETCH_DECODER_FLOW_PT_FLOW_H
#define ETCH_DECODER_FLOW_PT_FLOW_H

#include "decoder/flow/step_buffer.h"

/* Part of the input that belongs to the thread asked for; positions are bytes from the input's start. */
struct etch_pt_region {
    size_t begin, end;
    bool doubtful; /* perhaps it does: it is reported as a loss */
};

struct etch_pt_input {
    const uint8_t *bytes; /* begins with a PSB */
    size_t size;
    size_t own; /* from here on the bytes are the successor's, who begins with a PSB: they only tell how this ends */
    uint64_t offset;         /* of bytes[0] in the stream */
    bool last;               /* nothing follows */
    uint64_t until;          /* `last` only: no step of the input is later; UINT64_MAX: not known */
    struct etch_death death; /* of the thread, if what it did last is in here */
    uint32_t pid;
    const Etch__PtConfig *config;         /* may be NULL */
    const struct etch_pt_region *regions; /* NULL: all of it is the thread's */
    size_t n_regions;
};

/* Decodes all of `input` into `buffer`. */
void etch_pt_decode(const struct etch_pt_input *input, struct etch_blocks *blocks, struct etch_step_buffer *buffer);

#endif
