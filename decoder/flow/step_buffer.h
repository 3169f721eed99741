/* SPDX-License-Identifier: MIT */
/* The steps of one decode unit: blocks by pointer, and between them events and the bounds of time. The buffer is
 * compact, so that one thread can decode a unit and another can read the steps out later, in the unit's turn. */
#ifndef ETCH_DECODER_FLOW_STEP_BUFFER_H
#define ETCH_DECODER_FLOW_STEP_BUFFER_H

#include "decoder/flow/block.h"

enum { ETCH_STEP_BUFFER_TIME = 100 }; /* beside enum etch_step_kind: from here on ip <= time <= to */

struct etch_step_buffer_event {
    size_t at;     /* before which block */
    unsigned kind; /* enum etch_step_kind, or ETCH_STEP_BUFFER_TIME */
    Etch__LossCause cause;
    uint64_t ip, to;
    uint64_t offset;
    uint64_t ticks; /* ETCH_STEP_BUFFER_TIME: clock ticks since the anchor where it begins */
    bool nowhere;   /* ETCH_STEP_INTERRUPT: see struct etch_step */
    const char *detail;
};

/* How a thread died. */
struct etch_death {
    bool known;  /* of a signal, at the instruction `ip` */
    bool fault;  /* the instruction itself raised it */
    uint64_t ip; /* may be 0: a call through a null pointer */
};

struct etch_step_buffer {
    ETCH_ARRAY(const struct etch_block *) blocks;
    ETCH_ARRAY(struct etch_step_buffer_event) events;
    uint64_t next_ip; /* where execution went behind the buffer's end; 0: not known */
    uint64_t bytes;   /* decoded */
    bool failed;      /* memory ran out: the buffer is not whole */
};

/* Removes all steps, and keeps the memory. */
void etch_step_buffer_clear(struct etch_step_buffer *buffer);
void etch_step_buffer_release(struct etch_step_buffer *buffer);

static inline void etch_step_buffer_block(struct etch_step_buffer *buffer, const struct etch_block *block)
{
    if (!etch_array_push(&buffer->blocks, block))
        buffer->failed = true;
}

void etch_step_buffer_event(struct etch_step_buffer *buffer, const struct etch_step_buffer_event *event);

/* All later steps are at or after `lo`. */
void etch_step_buffer_time(struct etch_step_buffer *buffer, uint64_t lo, uint64_t ticks);

/* All steps so far are at or before `hi`. At `hi` the clock had counted `ticks` since the anchor before. */
void etch_step_buffer_until(struct etch_step_buffer *buffer, uint64_t hi, uint64_t ticks);

/* The thread died of the last step in the buffer. If this step is an interrupt at the same address, the instruction
 * there has begun but did not end: it becomes the last instruction before the interrupt. If no code is known at the
 * address, the interrupt gets `nowhere`. */
void etch_step_buffer_end_at(struct etch_step_buffer *buffer, struct etch_block_view *view,
                             const struct etch_death *death);

uint64_t etch_step_buffer_instructions(const struct etch_step_buffer *buffer);

struct etch_step_reader {
    struct etch_step step;         /* pid, tid, cpu, stream: common to all steps */
    uint64_t from, to;             /* as in etch_steps_options */
    uint64_t skip;                 /* instructions to pass over first, and events among them */
    struct etch_steps_count count; /* added to */
    etch_step_visitor *visit;
    void *context;
};

/* Calls `visit` for each step. Returns the value of `visit` if the value is not 0. */
int etch_step_buffer_read(const struct etch_step_buffer *buffer, struct etch_step_reader *reading);

#endif
