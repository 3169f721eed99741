/* SPDX-License-Identifier: MIT */
/* Watchpoint records as no kernel would write them, one behind the other. */
#include "collector/hits.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t used = 0;

    for (size_t at = 0; at < size; at += used) {
        struct etch_hit hit;
        uint64_t lost, sum = 0;
        enum etch_hits_item item = etch_hits_next(data + at, size - at, &used, &hit, &lost);

        if (item == ETCH_HITS_END || item == ETCH_HITS_BAD)
            break;
        if (item != ETCH_HITS_HIT)
            continue;
        for (size_t i = 0; i < hit.stack_size; i++)
            sum += hit.stack[i];
        if (sum > (uint64_t)255 * size || hit.stack_size > used)
            abort();
    }
    return 0;
}
