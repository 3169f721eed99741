/* SPDX-License-Identifier: MIT */
/* Private to the software recorder's runtime: a thread takes a ring, and a child process leaves those of its parent. */
#ifndef ETCH_COLLECTOR_SOFT_THREAD_H
#define ETCH_COLLECTOR_SOFT_THREAD_H

#include "collector/soft/chunk.h"

/* For a calling thread without a ring: takes a ring and begins a chunk of this kind. If no ring is left, the thread
 * records nothing from now on. */
HIDDEN void etch_soft_begin_thread(enum etch_soft_chunk_kind kind);

/* In a child that libc's fork did not make, libc's notion of the thread is still the parent's, and a lock would be
 * taken in the parent's name. The child records no more. */
HIDDEN void etch_soft_detach(struct etch_soft_recorder *s);

/* The page is empty in a child process, whichever call made the child. */
static inline bool is_copy(const struct etch_soft_recorder *s)
{
    return s->here && !*(volatile uint32_t *)s->here;
}

static inline void enter_child(void)
{
    if (is_copy(&etch_soft_recorder))
        etch_soft_forked();
}

static inline void leave_parent(void)
{
    if (__builtin_expect(is_copy(&etch_soft_recorder), 0))
        etch_soft_detach(&etch_soft_recorder);
}

#endif
