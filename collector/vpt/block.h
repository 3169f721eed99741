/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* A block of guest code as QEMU translated it, known once and for all at translation: where it is and how it ends. What
 * it writes into the trace follows from that and from the address at which execution went on. */
#ifndef ETCH_VPT_BLOCK_H
#define ETCH_VPT_BLOCK_H

#include "collector/vpt/packets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vpt_ending {
    VPT_FALLS,    /* no branch: cut by a page's end or a limit */
    VPT_REPEATS,  /* a string instruction, which QEMU runs one element at a time */
    VPT_CONDITIONAL,
    VPT_JUMPS,
    VPT_CALLS,
    VPT_JUMPS_INDIRECT,
    VPT_CALLS_INDIRECT,
    VPT_RETURN,
    VPT_FAR, /* system call, interrupt, far transfer */
};

struct vpt_block {
    uint64_t start, end; /* end is behind the last instruction */
    uint64_t last;       /* the last instruction */
    uint64_t target;     /* of a direct branch */
    uint32_t instructions;
    uint8_t ending;
    bool single;      /* one instruction: perhaps one that QEMU runs again by itself */
    bool first_traps; /* its first instruction divides */
    _Atomic bool handler; /* a signal handler begins here */
    struct vpt_block *next; /* in the list of all */
};

/* Looks at the last instruction's bytes. `b` has its addresses set. Returns -1 where they are no instruction. */
int vpt_block_classify(struct vpt_block *b, const uint8_t *bytes, size_t size);

/* Whether the bytes are all of an instruction, rather than the beginning of one. */
bool vpt_instruction_is_whole(const uint8_t *bytes, size_t size);

/* Whether one instruction: divides; reads and writes memory in one step (lock, xchg). */
struct vpt_traits {
    bool divides, atomic, repeats;
};
struct vpt_traits vpt_instruction_traits(const uint8_t *bytes, size_t size);

/* Writes what the end of block `b` says when execution goes on at `next`. False, and nothing written, where it cannot go
 * on there: something came between that was not seen. */
static inline bool vpt_block_ends(struct vpt_writer *w, const struct vpt_block *b, uint64_t next)
{
    switch ((enum vpt_ending)b->ending) {
    case VPT_CONDITIONAL:
        if (next != b->target && next != b->end)
            return false;
        vpt_put_bit(w, next != b->end);
        return true;
    case VPT_JUMPS:
        return next == b->target;
    case VPT_FALLS:
        return next == b->end;
    case VPT_REPEATS:
        return next == b->end || next == b->last;
    case VPT_CALLS:
        if (next != b->target)
            return false;
        vpt_put_call(w, b->end);
        return true;
    case VPT_RETURN:
        vpt_put_return(w, next);
        return true;
    case VPT_CALLS_INDIRECT:
        vpt_put_call(w, b->end);
        vpt_put_tip(w, next);
        return true;
    case VPT_JUMPS_INDIRECT:
    case VPT_FAR:
        vpt_put_tip(w, next);
        return true;
    }
    return false;
}

/* The same question without writing. */
bool vpt_block_may_go_to(const struct vpt_block *b, uint64_t next);

#endif
