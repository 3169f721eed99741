/* SPDX-License-Identifier: MIT */
/* A hash table of blocks; see block_cache.h. */
#include "decoder/flow/block_cache.h"

#include <stdlib.h>

static size_t hash(const struct etch_block_key *key)
{
    uint64_t h = key->first * 0x9e3779b97f4a7c15u;

    h = (h ^ h >> 29 ^ key->end) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 32 ^ (uintptr_t)key->image) * 0x94d049bb133111ebu;
    return (size_t)(h ^ h >> 31);
}

static bool same(const struct etch_block_key *a, const struct etch_block_key *b)
{
    return a->first == b->first && a->end == b->end && a->image == b->image;
}

static struct etch_block_slot *place(struct etch_block_slot *slots, size_t size, const struct etch_block_key *key)
{
    size_t at = hash(key) & (size - 1);

    while (slots[at].value && !same(&slots[at].key, key))
        at = (at + 1) & (size - 1);
    return &slots[at];
}

static bool grow(struct etch_block_cache *cache)
{
    size_t size = cache->size ? cache->size * 2 : 1024;
    struct etch_block_slot *grown = calloc(size, sizeof(*grown));

    if (!grown)
        return false;
    for (size_t i = 0; i < cache->size; i++)
        if (cache->slots[i].value)
            *place(grown, size, &cache->slots[i].key) = cache->slots[i];
    free(cache->slots);
    cache->slots = grown;
    cache->size = size;
    return true;
}

struct etch_block_slot *etch_block_cache_slot(struct etch_block_cache *cache, const struct etch_block_key *key)
{
    struct etch_block_slot *slot;

    if (cache->used * 2 >= cache->size && !grow(cache))
        return NULL;
    slot = place(cache->slots, cache->size, key);
    if (!slot->value) {
        slot->key = *key;
        cache->used++;
    }
    return slot;
}

void etch_block_cache_release(struct etch_block_cache *cache)
{
    free(cache->slots);
    *cache = (struct etch_block_cache){0};
}
