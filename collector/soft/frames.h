/* SPDX-License-Identifier: MIT */
/* Private to the software recorder's runtime: the functions that the thread is in, as a record of the ring. */
#ifndef ETCH_COLLECTOR_SOFT_FRAMES_H
#define ETCH_COLLECTOR_SOFT_FRAMES_H

#include "collector/soft/chunk.h"

/* The frames are written into the ring directly and not gathered on the stack first: the stack may be a handler's, and
 * small. */
struct etch_soft_frames {
    uint8_t *to; /* NULL: they are counted only */
    uint8_t n, flags;
};

/* Returns true if the frame lies on the stack between `below` and `top`. Any other frame is from other code, or on
 * another stack, and is not read. */
static inline bool is_between(uintptr_t frame, uintptr_t below, const struct etch_soft_act *top)
{
    return frame > below && frame <= top->frame && !(frame & 7);
}

static inline uint8_t *frames_of(uint8_t *sync)
{
    return sync + 1 + sizeof(struct etch_soft_sync);
}

HIDDEN void etch_soft_collect_frames(struct etch_soft_frames *f, const struct etch_soft_act *top, uintptr_t frame);

/* Writes the record in front of its frames, which are already in place. Returns the address of the next record. */
HIDDEN uint8_t *etch_soft_put_sync(uint8_t *cur, struct etch_soft_sync sync, const struct etch_soft_frames *f);

/* Writes the record and its frames. */
HIDDEN uint8_t *etch_soft_put_place(uint8_t *cur, struct etch_soft_sync sync, uintptr_t frame);

#endif
