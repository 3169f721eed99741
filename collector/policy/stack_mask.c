/* SPDX-License-Identifier: MIT */
/* Masked stacks; see stack_mask.h. */
#include "collector/policy/stack_mask.h"

#include <string.h>

/* Less than a word, at either end of the copy. */
static uint64_t clear(uint8_t *bytes, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++)
        any |= bytes[i] != 0;
    if (n)
        memset(bytes, 0, n);
    return any;
}

uint64_t etch_stack_mask(const struct etch_stack_mask *m, uint8_t *bytes, size_t size)
{
    size_t first = (size_t)(-m->start & 7), at;
    uint64_t hidden = clear(bytes, first < size ? first : size);

    for (at = first; size >= 8 && at <= size - 8; at += 8) {
        uint64_t word;

        memcpy(&word, bytes + at, 8);
        if (!word || (word >= m->low && word < m->high) || m->is_code(m->context, m->start + at, word))
            continue;
        memset(bytes + at, 0, 8);
        hidden++;
    }
    return hidden + (at < size ? clear(bytes + at, size - at) : 0);
}
