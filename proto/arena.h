/* SPDX-License-Identifier: MIT */
/* Memory for one unpacked record at a time: handed out in a row and given back all at once. The total never exceeds a
 * limit, even for crafted bytes (a megabyte of empty submessages unpacks to a hundred). Private to proto/. */
#ifndef ETCH_PROTO_ARENA_H
#define ETCH_PROTO_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct etch_arena_block;

struct etch_arena {
    ProtobufCAllocator allocator; /* for protobuf-c; free does nothing */
    struct etch_arena_block *blocks;
    size_t used;  /* of the newest block */
    size_t total; /* of all blocks */
    size_t taken; /* handed out since the last reset */
    size_t limit;
    bool exhausted; /* an allocation was refused since the last reset */
    bool starved;   /* the refusal was for lack of memory, not by the limit */
};

void etch_arena_init(struct etch_arena *arena, size_t limit);

/* NULL when the limit or the memory is reached. */
void *etch_arena_alloc(struct etch_arena *arena, size_t size);

/* Takes all memory back. Keeps one block of ordinary size for the next record. */
void etch_arena_reset(struct etch_arena *arena);

void etch_arena_release(struct etch_arena *arena);

#endif
