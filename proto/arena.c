/* SPDX-License-Identifier: MIT */
/* Memory for one record at a time; see arena.h. */
#include "proto/arena.h"

#include "base/assert.h"

#include <stdalign.h>
#include <stdlib.h>

#define BLOCK_SIZE ((size_t)2 << 20)
#define ALIGNMENT alignof(max_align_t)

struct etch_arena_block {
    struct etch_arena_block *older;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

static void *allocate(void *context, size_t size)
{
    return etch_arena_alloc(context, size);
}

static void keep(void *context, void *pointer)
{
    (void)context;
    (void)pointer;
}

void etch_arena_init(struct etch_arena *arena, size_t limit)
{
    *arena = (struct etch_arena){.allocator = {allocate, keep, arena}, .limit = limit};
}

static bool add_block(struct etch_arena *arena, size_t size)
{
    struct etch_arena_block *block;

    ETCH_ASSERT(arena->total <= arena->limit);
    if (size > arena->limit - arena->total)
        return false;
    block = malloc(sizeof(*block) + size);
    if (!block) {
        arena->starved = true;
        return false;
    }
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->total += size;
    arena->used = 0;
    return true;
}

void *etch_arena_alloc(struct etch_arena *arena, size_t size)
{
    void *result;

    if (size > arena->limit) {
        arena->exhausted = true;
        return NULL;
    }
    size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (!arena->blocks || size > arena->blocks->size - arena->used) {
        if (!add_block(arena, size > BLOCK_SIZE ? size : BLOCK_SIZE)) {
            arena->exhausted = true;
            return NULL;
        }
    }
    ETCH_ASSERT(arena->used + size <= arena->blocks->size);
    result = arena->blocks->bytes + arena->used;
    arena->used += size;
    arena->taken += size;
    return result;
}

void etch_arena_reset(struct etch_arena *arena)
{
    while (arena->blocks && (arena->blocks->older || arena->blocks->size > BLOCK_SIZE)) {
        struct etch_arena_block *block = arena->blocks;

        arena->blocks = block->older;
        arena->total -= block->size;
        free(block);
    }
    arena->used = arena->taken = 0;
    arena->exhausted = false;
}

void etch_arena_release(struct etch_arena *arena)
{
    while (arena->blocks) {
        struct etch_arena_block *block = arena->blocks;

        arena->blocks = block->older;
        free(block);
    }
    arena->total = arena->used = arena->taken = 0;
}
