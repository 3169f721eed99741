/* SPDX-License-Identifier: MIT */
/* A binary on disk, mapped to be read, and its build-id. Private to decoder/. */
#ifndef ETCH_DECODER_CODE_FILE_H
#define ETCH_DECODER_CODE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_code_file {
    char *path;
    const uint8_t *bytes;
    size_t size;
    const uint8_t *build_id; /* within bytes; NULL where it has none */
    size_t build_id_size;
};

/* Maps a regular file. Returns false where it cannot be read. */
bool etch_code_file_open(struct etch_code_file *file, const char *path);

void etch_code_file_close(struct etch_code_file *file);

/* The build-id note of an ELF file of either class; NULL where there is none. Trusts no byte. */
const uint8_t *etch_elf_build_id(const uint8_t *bytes, size_t size, size_t *id_size);

#endif
