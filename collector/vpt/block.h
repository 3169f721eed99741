/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* A block of guest code as QEMU translated it, known once and for all at translation: where it is and how it ends. The
 * packets of a block follow from its ending and from the address of the next block. */
#ifndef ETCH_VPT_BLOCK_H
#define ETCH_VPT_BLOCK_H

#include "collector/vpt/packets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum etch_vpt_ending {
    VPT_CONDITIONAL,
    VPT_GOES_ON, /* to one place only: a direct jump, or no branch: the block was cut by a page's end or a limit */
    VPT_CALLS,
    VPT_RETURN,
    VPT_JUMPS_INDIRECT,
    VPT_CALLS_INDIRECT,
    VPT_REPEATS, /* a string instruction, which QEMU runs one element at a time */
    VPT_FAR,     /* system call, interrupt, far transfer */
};

struct etch_vpt_block {
    uint64_t start, end; /* end is behind the last instruction */
    uint64_t last;       /* the last instruction */
    uint64_t target;     /* of a direct branch; where there is none, the end */
    uint32_t instructions;
    uint8_t ending;
    bool single;                 /* one instruction: QEMU may run it again on its own */
    bool first_traps;            /* its first instruction divides */
    _Atomic bool handler;        /* a signal handler begins here */
    struct etch_vpt_block *next; /* in the list of all */
    void *list;                  /* of its instructions, where callbacks need one */
};

/* Looks at the last instruction's bytes. `b` has its addresses set. Returns -1 where they are no instruction. */
int etch_vpt_block_classify(struct etch_vpt_block *b, const uint8_t *bytes, size_t size);

/* True if the bytes are a whole instruction, not only its beginning. */
bool etch_vpt_instruction_is_whole(const uint8_t *bytes, size_t size);

/* Traits of an instruction: `divides`; `atomic`: reads and writes memory in one step (lock, xchg); `repeats`. */
struct etch_vpt_traits {
    bool divides, atomic, repeats;
};
struct etch_vpt_traits etch_vpt_instruction_traits(const uint8_t *bytes, size_t size);

/* The rarer endings of etch_vpt_block_ends(). */
bool etch_vpt_block_ends_rarely(struct etch_vpt_writer *w, const struct etch_vpt_block *b, uint64_t next);

/* Writes what the end of block `b` says when execution goes on at `next`. False, and nothing written, where it cannot
 * go on there: something came between that was not seen. */
static inline __attribute__((always_inline)) bool etch_vpt_block_ends(struct etch_vpt_writer *w,
                                                                      const struct etch_vpt_block *b, uint64_t next)
{
    if (b->ending == VPT_CONDITIONAL) {
        /* One test, not two: which way it went is as hard to predict here as it was for the guest. */
        if (((next ^ b->target) != 0) & ((next ^ b->end) != 0))
            return false;
        etch_vpt_put_bit(w, next != b->end);
        return true;
    }
    if (b->ending == VPT_GOES_ON)
        return next == b->target;
    return etch_vpt_block_ends_rarely(w, b, next);
}

/* The same question without writing. */
bool etch_vpt_block_may_go_to(const struct etch_vpt_block *b, uint64_t next);

#endif
