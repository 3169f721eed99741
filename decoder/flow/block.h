/* SPDX-License-Identifier: MIT */
/* Straight pieces of code, disassembled once and kept: what a block decoder walks over. A cache belongs to one thread;
 * its blocks live as long as it does, and nothing but their links ever changes. */
#ifndef ETCH_DECODER_FLOW_BLOCK_H
#define ETCH_DECODER_FLOW_BLOCK_H

#include "decoder/code.h"

enum etch_exec_mode { ETCH_EXEC_64, ETCH_EXEC_32, ETCH_EXEC_16 };

struct etch_block {
    uint64_t first, last, end;
    uint64_t target;          /* of a direct branch */
    struct etch_block *taken; /* the blocks at target and end, once they were asked for */
    struct etch_block *fall;
    const Etch__Image *image;
    const uint8_t *sizes; /* of each instruction */
    uint32_t count;
    enum etch_branch_kind branch;
};

struct etch_blocks;
struct etch_block_view; /* the blocks of one space, mode and time */

/* NULL where memory is short. */
struct etch_blocks *etch_blocks_new(const struct etch_code *code);
void etch_blocks_free(struct etch_blocks *blocks);

/* The view of a process's code within the ages [lo, hi] of its space. NULL where memory is short. */
struct etch_block_view *etch_block_view_of(struct etch_blocks *blocks, uint32_t pid, enum etch_exec_mode mode,
                                           size_t lo, size_t hi);

/* The same as etch_code_space_changes() and etch_code_space_age() of the process's space. */
size_t etch_blocks_changes(const struct etch_blocks *blocks, uint32_t pid);
size_t etch_blocks_age(const struct etch_blocks *blocks, uint32_t pid, uint64_t tsc);

/* The block that begins at `ip`; NULL with the reason in `why` where no code is known there. */
struct etch_block *etch_block_at(struct etch_block_view *view, uint64_t ip, const char **why);

/* The blocks that follow, by link. */
static inline struct etch_block *etch_block_taken(struct etch_block_view *view, struct etch_block *b, const char **why)
{
    if (!b->taken)
        b->taken = etch_block_at(view, b->target, why);
    return b->taken;
}

static inline struct etch_block *etch_block_fall(struct etch_block_view *view, struct etch_block *b, const char **why)
{
    if (!b->fall)
        b->fall = etch_block_at(view, b->end, why);
    return b->fall;
}

/* The instructions of `b` before `ip`, as a block of its own without a branch; kept by the cache. NULL where no
 * instruction of `b` but the first begins there, or memory is short. */
struct etch_block *etch_block_before(struct etch_block_view *view, const struct etch_block *b, uint64_t ip);

/* The first instruction of `b` as a block of its own without a branch. NULL where memory is short. */
struct etch_block *etch_block_begun(struct etch_block_view *view, const struct etch_block *b);

#endif
