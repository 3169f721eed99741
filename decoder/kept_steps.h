/* SPDX-License-Identifier: MIT */
/* The steps of a recording, kept: decoded once, read out any number of times. Blocks are kept once each, a step is 16
 * bytes. */
#ifndef ETCH_DECODER_KEPT_STEPS_H
#define ETCH_DECODER_KEPT_STEPS_H

#include "base/array.h"
#include "base/index.h"
#include "decoder/steps.h"

struct etch_kept_step {
    uint32_t form;   /* the block, or the event */
    uint32_t around; /* thread and time */
    uint64_t to;
};

struct etch_kept_around {
    uint32_t pid, tid, cpu, stream;
    struct etch_interval time;
};

struct etch_kept_steps {
    size_t room;                        /* bytes that the steps may take; more are decoded again */
    size_t times;                       /* that the recording was decoded */
    bool whole;                         /* all steps are here */
    bool over;                          /* they do not fit */
    ETCH_ARRAY(struct etch_step) forms; /* each block once, each event */
    ETCH_ARRAY(size_t) sizes_of;        /* by form, into sizes */
    ETCH_ARRAY(uint8_t) sizes;
    ETCH_ARRAY(struct etch_kept_around) around;
    ETCH_ARRAY(struct etch_kept_step) steps;
    struct etch_index by_block; /* into forms */
};

/* The same as etch_steps() of the whole recording. The recording must stay the same and outlive `kept`. Kept steps are
 * read out; otherwise the recording is decoded, and its steps are kept if they fit. */
int etch_steps_kept(struct etch_kept_steps *kept, struct etch_recording *recording, unsigned jobs,
                    etch_step_visitor *visit, void *context, struct etch_error *err);

/* Bytes that the steps take. */
size_t etch_kept_steps_size(const struct etch_kept_steps *kept);

/* Forgets the steps, not how often they were decoded. */
void etch_kept_steps_release(struct etch_kept_steps *kept);

#endif
