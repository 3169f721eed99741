/* SPDX-License-Identifier: MIT */
/* A binary on disk, mapped to be read. */
#ifndef ETCH_BINARY_CODE_FILE_H
#define ETCH_BINARY_CODE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_code_file {
    char *path;
    const uint8_t *bytes;
    size_t size;
};

/* Maps a regular file. Returns false where it cannot be read. */
bool etch_code_file_open(struct etch_code_file *file, const char *path);

void etch_code_file_close(struct etch_code_file *file);

#endif
