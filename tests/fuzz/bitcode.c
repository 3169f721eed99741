/* SPDX-License-Identifier: MIT */
/* Any bytes as a binary with bitcode in it: sections found, renamed and split without reading outside. */
#include "slicer/bitcode.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int split(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    etch_bitcode_modules modules = {0};

    (void)context;
    if (etch_bitcode_split(section, size, &modules, err) == 0)
        for (size_t i = 0; i < modules.n; i++)
            if (modules.v[i].offset + modules.v[i].size > size || strlen(modules.v[i].producer) > 31)
                abort();
    etch_array_free(&modules);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_error err;
    uint8_t *copy = malloc(size + 1);

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    etch_bitcode_sections(copy, size, split, NULL, &err);
    etch_bitcode_rename(copy, size);
    split(NULL, data, size, &err);
    free(copy);
    return 0;
}
