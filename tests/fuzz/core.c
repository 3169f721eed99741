/* SPDX-License-Identifier: MIT */
/* Core files, damaged and cut: everything that a reader asks for. */
#include "binary/core.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct etch_core *core)
{
    const struct etch_core_contents *c = etch_core_contents(core);
    uint8_t id[ETCH_BUILD_ID_MAX], bytes[256];
    char *words[16];
    uint64_t top;
    size_t n = etch_core_arguments(core, words, 16, &top);

    for (size_t i = 0; i < n; i++)
        free(words[i]);
    for (size_t i = 0; i < c->files.n && i < 64; i++)
        if (etch_core_build_id(core, &c->files.v[i], id) > sizeof(id) || c->files.v[i].start >= c->files.v[i].end)
            abort();
    for (size_t i = 0; i < c->threads.n && i < 64; i++) {
        etch_core_read(core, c->threads.v[i].registers[7], bytes, sizeof(bytes));
        etch_core_file_at(core, c->threads.v[i].registers[8]);
    }
    for (size_t i = 0; i < c->segments.n && i < 64; i++)
        if (etch_core_read(core, c->segments.v[i].start + c->segments.v[i].dumped - 1, bytes, sizeof(bytes)) >
            sizeof(bytes))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_core *core;
    struct etch_error err;

    if (etch_core_open_bytes(&core, data, size, "core", &err) < 0)
        return 0;
    if (!etch_core_contents(core)->threads.n)
        abort();
    ask(core);
    etch_core_free(core);
    return 0;
}
