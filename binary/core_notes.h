/* SPDX-License-Identifier: MIT */
/* Private. The notes of a core file, and those of an ELF file that is mapped in it. */
#ifndef ETCH_BINARY_CORE_NOTES_H
#define ETCH_BINARY_CORE_NOTES_H

#include "binary/core.h"

#define ETCH_CORE_AUXV_MAX 64u

struct etch_core_vector {
    struct {
        uint64_t type, value;
    } entries[ETCH_CORE_AUXV_MAX];
    size_t n;
};

/* Bytes by position: of the file, or of memory. Returns how many there are. */
struct etch_core_reader {
    const void *context;
    size_t (*read)(const void *context, uint64_t position, void *buffer, size_t size);
};

/* Takes the notes in [`offset`, `offset` + `size`) of the core. False: no memory. */
bool etch_core_notes_take(struct etch_core_contents *contents, struct etch_core_vector *auxv,
                          const struct etch_core_reader *core, uint64_t offset, uint64_t size);

/* After the last notes: files get their order and their rights. */
void etch_core_notes_end(struct etch_core_contents *contents);

size_t etch_core_notes_build_id(const struct etch_core_reader *memory, const struct etch_core_file *file,
                                uint8_t id[ETCH_BUILD_ID_MAX]);

#endif
