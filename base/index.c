/* SPDX-License-Identifier: MIT */
/* Open addressing, at most half full; see index.h. */
#include "base/index.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct etch_index_slot {
    uint64_t hash;
    uint32_t number; /* + 1; 0: free */
};

uint64_t etch_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The low bits of FNV alone are poor where the bytes differ in their last only. */
static size_t spread(uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32);
}

uint32_t etch_index_next(const struct etch_index *index, uint64_t hash, size_t *probe)
{
    while (*probe < index->capacity) {
        const struct etch_index_slot *slot = &index->slots[(spread(hash) + (*probe)++) & (index->capacity - 1)];

        if (!slot->number)
            return ETCH_INDEX_NONE;
        if (slot->hash == hash)
            return slot->number - 1;
    }
    return ETCH_INDEX_NONE;
}

static void put(struct etch_index *index, struct etch_index_slot slot)
{
    size_t at = spread(slot.hash);

    ETCH_ASSERT_MSG(index->n < index->capacity, "%zu of %zu slots are taken", index->n, index->capacity);
    while (index->slots[at & (index->capacity - 1)].number)
        at++;
    index->slots[at & (index->capacity - 1)] = slot;
    index->n++;
}

static bool grow(struct etch_index *index)
{
    struct etch_index bigger = {.capacity = index->capacity ? index->capacity * 2 : 64};
    size_t first = 0;

    bigger.slots = calloc(bigger.capacity, sizeof(*bigger.slots));
    if (!bigger.slots)
        return false;
    /* From behind a free slot on, so that numbers of one hash stay in their order. */
    while (first < index->capacity && index->slots[first].number)
        first++;
    for (size_t i = 0; i < index->capacity; i++) {
        const struct etch_index_slot *slot = &index->slots[(first + i) & (index->capacity - 1)];

        if (slot->number)
            put(&bigger, *slot);
    }
    free(index->slots);
    *index = bigger;
    return true;
}

bool etch_index_add(struct etch_index *index, uint64_t hash, uint32_t number)
{
    ETCH_ASSERT(number != ETCH_INDEX_NONE); /* + 1 would be a free slot */
    if (index->n * 2 >= index->capacity && !grow(index))
        return false;
    put(index, (struct etch_index_slot){hash, number + 1});
    return true;
}

void etch_index_release(struct etch_index *index)
{
    free(index->slots);
    memset(index, 0, sizeof(*index));
}
