/* SPDX-License-Identifier: MIT */
/* See code_file.h. */
#include "decoder/code_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool etch_code_file_open(struct etch_code_file *file, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    void *bytes;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
        close(fd);
        return false;
    }
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *file = (struct etch_code_file){strdup(path), bytes, (size_t)st.st_size};
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
