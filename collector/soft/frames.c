/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: walks the stack of compiled code. */
#include "collector/soft/frames.h"

static bool push_frame(struct etch_soft_frames *f, uintptr_t ip)
{
    if (f->n == ETCH_SOFT_FRAMES) {
        f->flags = ETCH_SOFT_TRUNCATED;
        return false;
    }
    if (f->to)
        put_word(f->to + f->n * sizeof(uint64_t), ip);
    f->n++;
    return true;
}

/* Compiled code keeps frame pointers. Each frame therefore leads to the next, up to the entry from outside. The frame
 * pointers may lead on beyond the entry, if compiled code called by a pointer. A 0 then separates the two parts. */
void etch_soft_collect_frames(struct etch_soft_frames *f, const struct etch_soft_act *top, uintptr_t frame)
{
    f->n = f->flags = 0;
    while (top) {
        const uintptr_t *words = (const uintptr_t *)frame;
        uintptr_t next = words[0];
        bool entry = frame == top->frame;

        if (!entry && next == top->frame) {
            if ((top->flags & ETCH_SOFT_OWN) && !push_frame(f, words[1]))
                return;
            frame = next;
            continue;
        }
        if (entry && (!top->prev || (top->flags & ETCH_SOFT_HANDLER)))
            return;
        if (!is_between(next, frame, entry ? top->prev : top)) {
            f->flags = ETCH_SOFT_TRUNCATED;
            return;
        }
        if ((entry && !push_frame(f, 0)) || !push_frame(f, words[1]))
            return;
        top = entry ? top->prev : top;
        frame = next;
    }
}

uint8_t *etch_soft_put_sync(uint8_t *cur, struct etch_soft_sync sync, const struct etch_soft_frames *f)
{
    sync.frames = f->n;
    sync.flags |= f->flags;
    put(cur + 1, &sync, sizeof(sync));
    *(volatile uint8_t *)cur = ETCH_SOFT_SYNC;
    return frames_of(cur) + f->n * sizeof(uint64_t);
}

uint8_t *etch_soft_put_place(uint8_t *cur, struct etch_soft_sync sync, uintptr_t frame)
{
    struct etch_soft_frames frames = {.to = frames_of(cur)};

    etch_soft_collect_frames(&frames, etch_soft_top, frame);
    return etch_soft_put_sync(cur, sync, &frames);
}
