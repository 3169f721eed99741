/* SPDX-License-Identifier: MIT */
/* Code as no compiler would write it, in which an access of the lab is looked for. */
#include "decoder/lab_access.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (uint32_t access = 1; access <= 16; access *= 2) {
        uint64_t found = etch_lab_access_find(data, size, 0x1000, access, access & 1);

        if (found && (found < 0x1000 || found - 0x1000 >= size))
            abort();
    }
    return 0;
}
