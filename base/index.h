/* SPDX-License-Identifier: MIT */
/* Finds the numbers of things by a hash of them, so that a list need not be walked:
 *
 *     size_t probe = 0;
 *     uint32_t i;
 *     while ((i = etch_index_next(&index, hash, &probe)) != ETCH_INDEX_NONE)
 *         if (is_same(&list.v[i], &wanted)) return i;
 */
#ifndef ETCH_BASE_INDEX_H
#define ETCH_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_INDEX_NONE UINT32_MAX
#define ETCH_HASH_START UINT64_C(0xcbf29ce484222325)

struct etch_index {
    struct etch_index_slot *slots;
    size_t capacity, n;
};

/* The hash of `size` bytes behind those that `hash` is of (FNV-1a). */
uint64_t etch_hash(uint64_t hash, const void *bytes, size_t size);

/* Each number that was added with this hash, oldest first; ETCH_INDEX_NONE behind the last. `*probe` begins at 0. */
uint32_t etch_index_next(const struct etch_index *index, uint64_t hash, size_t *probe);

/* False, and nothing changed, when memory is short. */
bool etch_index_add(struct etch_index *index, uint64_t hash, uint32_t number);

void etch_index_release(struct etch_index *index);

#endif
