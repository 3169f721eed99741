/* SPDX-License-Identifier: MIT */
/* An input as a file, for readers that take a path. */
#ifndef ETCH_TESTS_FUZZ_FILE_H
#define ETCH_TESTS_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns a descriptor to close; `path` leads to the same bytes. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
