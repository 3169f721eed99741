/* SPDX-License-Identifier: MIT */
/* See code_file.h. */
#include "binary/code_file.h"

#include "base/input.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool etch_code_file_open(struct etch_code_file *file, const char *path)
{
    int fd = etch_input_open(path);
    off_t size = fd >= 0 ? etch_input_size(fd) : -1;
    void *bytes = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;

    if (fd >= 0)
        close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *file = (struct etch_code_file){strdup(path), bytes, (size_t)size};
    if (!file->path) {
        etch_code_file_close(file);
        return false;
    }
    return true;
}

void etch_code_file_close(struct etch_code_file *file)
{
    if (file->bytes)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    free(file->path);
}
