/* SPDX-License-Identifier: MIT */
/* A cache of facts about blocks of code, by the block's place: a program runs the same blocks over and over. */
#ifndef ETCH_DECODER_FLOW_BLOCK_CACHE_H
#define ETCH_DECODER_FLOW_BLOCK_CACHE_H

#include "decoder/steps.h"

#include <stddef.h>

struct etch_block_key {
    const Etch__Image *image;
    uint64_t first, end;
};

struct etch_block_slot {
    struct etch_block_key key;
    uint32_t value; /* the user's, plus one; 0: a new slot, to be set */
};

struct etch_block_cache {
    struct etch_block_slot *slots;
    size_t used, size;
};

/* The slot of a block, made if need be; good until the next call. NULL when memory is short. */
struct etch_block_slot *etch_block_cache_slot(struct etch_block_cache *cache, const struct etch_block_key *key);

void etch_block_cache_release(struct etch_block_cache *cache);

#endif
