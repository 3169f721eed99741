/* SPDX-License-Identifier: MIT */
/* See mapped.h. */
#include "slicer/lab/mapped.h"

#include "base/input.h"

#include <sys/mman.h>
#include <unistd.h>

bool etch_lab_map(struct etch_lab_mapped *m, const char *path)
{
    int fd = etch_input_open(path);
    off_t size = fd >= 0 ? etch_input_size(fd) : -1;
    void *at = MAP_FAILED;

    if (size > 0)
        at = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return false;
    m->bytes = at;
    m->size = (size_t)size;
    return true;
}

void etch_lab_unmap(struct etch_lab_mapped *m)
{
    munmap((void *)(uintptr_t)m->bytes, m->size);
}
