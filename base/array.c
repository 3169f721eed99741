/* SPDX-License-Identifier: MIT */
/* A growable array; see array.h. */
#include "base/array.h"

#include <stdint.h>

bool etch_array_grow(void **v, size_t *capacity, size_t element, size_t want)
{
    size_t room = *capacity ? *capacity : 8;
    void *grown;

    while (room < want) {
        if (room > SIZE_MAX / 2)
            return false;
        room *= 2;
    }
    if (room > SIZE_MAX / element)
        return false;
    grown = realloc(*v, room * element);
    if (!grown)
        return false;
    *v = grown;
    *capacity = room;
    return true;
}
