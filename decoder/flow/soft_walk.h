/* SPDX-License-Identifier: MIT */
/* Ways through machine code between two marks of the software recorder, found once and kept. Private to decoder/. */
#ifndef ETCH_DECODER_FLOW_SOFT_WALK_H
#define ETCH_DECODER_FLOW_SOFT_WALK_H

#include "decoder/flow/block.h"
#include "decoder/flow/soft_map.h"

/* A thread's position: at `now`. It came straight from `from`, where the block begins that is not yet reported. The
 * marks at `now` before `next` are passed. */
struct etch_soft_position {
    uint64_t from, now;
    size_t next;
};

enum etch_soft_goal {
    ETCH_SOFT_TO_NODE,    /* the mark of a node */
    ETCH_SOFT_TO_CALL,    /* the last call before the mark of a node */
    ETCH_SOFT_TO_OUTSIDE, /* the next call */
    ETCH_SOFT_TO_RETURN,  /* a return, or a jump out of the function in its place */
    ETCH_SOFT_TO_IP,      /* an instruction, marks or not */
};

/* A way: whole blocks to report, and its end. For TO_CALL, TO_OUTSIDE and TO_RETURN the last block is the block of the
 * call or return, and the end is behind this block. */
struct etch_soft_way {
    const struct etch_block **blocks;
    size_t n;
    struct etch_soft_position end;
    bool found;
    bool unsure; /* TO_IP: there is another way */
};

struct etch_soft_walks;

struct etch_soft_walks *etch_soft_walks_new(const struct etch_soft_map *map, struct etch_blocks *blocks);
void etch_soft_walks_free(struct etch_soft_walks *walks);

/* The shortest way from `from` to the goal in `function` without passing marks of other nodes; `goal_at` is the node,
 * or the address for TO_IP. NULL where memory is short. Lives as long as the walks. */
const struct etch_soft_way *etch_soft_walk(struct etch_soft_walks *walks, struct etch_soft_position from,
                                           enum etch_soft_goal goal, uint32_t function, uint64_t goal_at);

/* The position at an address, before all marks there. */
struct etch_soft_position etch_soft_position_at(const struct etch_soft_walks *walks, uint64_t ip);

/* Finds the first node that the code at a return address leads to; false: there is none. */
bool etch_soft_next_node(struct etch_soft_walks *walks, uint64_t ip, uint32_t *function, uint32_t *node);

struct etch_block_view *etch_soft_walks_view(struct etch_soft_walks *walks);

#endif
