/* SPDX-License-Identifier: MIT */
/* Damaged ELF files and DWARF: the tables are made and asked at many addresses; nothing may crash or run on. */
#include "binary/symbols.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    Etch__Image image = ETCH__IMAGE__INIT;

    image.path = (char *)"[fuzz]";
    image.start = 0x7f0000000000;
    image.size = size;
    image.code.data = (uint8_t *)data;
    image.code.len = size;
    for (uint64_t at = 0; symbols && at < size; at += 32) {
        struct etch_location location;

        etch_symbols_find(symbols, &image, image.start + at, &location);
        for (const struct etch_frame *f = &location.frame; f; f = f->caller)
            if (f->function && f->function[0] == '\0' && f->line == UINT32_MAX)
                __builtin_trap(); /* reads every frame */
    }
    etch_symbols_free(symbols);
    return 0;
}
