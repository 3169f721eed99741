/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: notes the code mappings of the process in the pool when a module is loaded. The
 * notes are made after the dynamic linker, which has just made the same system calls. */
#include "collector/soft/runtime.h"

#include <fcntl.h>

bool etch_soft_each_mapping(etch_soft_on_line *take, void *context)
{
    char buffer[1024], line[512];
    int fd = (int)call6(__NR_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    bool enough = false;
    size_t n = 0;
    long got;

    if (fd < 0)
        return false;
    while (!enough && (got = call3(__NR_read, fd, (long)buffer, sizeof(buffer))) > 0)
        for (long i = 0; i < got && !enough; i++) {
            if (n < sizeof(line))
                /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): the kernel wrote it */
                line[n++] = buffer[i];
            if (buffer[i] != '\n')
                continue;
            enough = take(context, line, n);
            n = 0;
        }
    call3(__NR_close, fd, 0, 0);
    return true;
}

/* "start-end rwxp ...": of code, or of a file: an emulator may not say which of them are code. */
static bool is_worth_noting(const char *line, size_t n)
{
    bool file = false;
    size_t k = 0;

    while (k < n && line[k] != ' ')
        k++;
    for (size_t i = 0; i < n; i++)
        file |= line[i] == '/';
    return k + 4 < n && (line[k + 3] == 'x' || file);
}

static bool is_noted(const struct etch_soft_pool *pool, const char *line, size_t n)
{
    size_t size = pool->maps_size < sizeof(pool->maps) ? pool->maps_size : sizeof(pool->maps);

    for (size_t at = 0; at + n <= size;) {
        if (is_same(pool->maps + at, line, n))
            return true;
        while (at < size && pool->maps[at] != '\n')
            at++;
        at++;
    }
    return false;
}

/* The loader starts one module at a time. A child process has a loader of its own, so that the size is changed
 * atomically. */
static bool note_line(void *context, const char *line, size_t n)
{
    struct etch_soft_pool *pool = context;
    uint32_t at = pool->maps_size;

    if (!is_worth_noting(line, n) || is_noted(pool, line, n))
        return false;
    do {
        if (line[n - 1] != '\n' || at > sizeof(pool->maps) || n > sizeof(pool->maps) - at) {
            __atomic_fetch_add(&pool->maps_lost, 1, __ATOMIC_RELAXED);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&pool->maps_size, &at, at + (uint32_t)n, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    put(pool->maps + at, line, n);
    return false;
}

void etch_soft_note_maps(struct etch_soft_pool *pool)
{
    if (!etch_soft_each_mapping(note_line, pool))
        __atomic_fetch_add(&pool->maps_lost, 1, __ATOMIC_RELAXED);
}
