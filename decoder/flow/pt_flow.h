/* SPDX-License-Identifier: MIT */
/* From PT packets and code to executed steps. Packets drive the decoder: an instruction goes into the step buffer only
 * when a later packet proves that execution got past the instruction. Code that did not run is never reported. If
 * packets and code contradict each other, or code is missing, the step buffer gets a loss, and the walk goes on at the
 * next packet with a certain address. */
#ifndef ETCH_DECODER_FLOW_PT_FLOW_H
#define ETCH_DECODER_FLOW_PT_FLOW_H

#include "decoder/flow/step_buffer.h"

/* Part of the input that belongs to the thread asked for; positions are bytes from the input's start. */
struct etch_pt_region {
    size_t begin, end;
    bool doubtful; /* perhaps another thread's: reported as a loss */
};

struct etch_pt_input {
    const uint8_t *bytes; /* begins with a PSB */
    size_t size;
    size_t own; /* the bytes from here on are the successor's (it begins with a PSB): they only tell how this ends */
    uint64_t offset;         /* of bytes[0] in the stream */
    bool last;               /* nothing follows */
    uint64_t until;          /* `last` only: no step of the input is later; UINT64_MAX: not known */
    struct etch_death death; /* of the thread, if its last steps are in this input */
    uint32_t pid;
    const Etch__PtConfig *config;         /* may be NULL */
    const struct etch_pt_region *regions; /* NULL: all of it is the thread's */
    size_t n_regions;
};

/* Decodes all of `input` into `buffer`. */
void etch_pt_decode(const struct etch_pt_input *input, struct etch_blocks *blocks, struct etch_step_buffer *buffer);

#endif
