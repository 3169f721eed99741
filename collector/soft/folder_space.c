/* SPDX-License-Identifier: MIT */
/* See folder_space.h. */
#include "collector/soft/folder_space.h"

#include <fcntl.h>
#include <sys/stat.h>

/* NOLINTBEGIN(clang-analyzer-core*): the kernel writes what looks unwritten */

/* Pools of processes that ended well that stay in a folder, so that a failing run can be compared with them. */
#define PASSED 16u

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
    return call6(__NR_pread64, fd, (long)to, (long)size, (long)at, 0, 0) == (long)size;
}

/* The kernel saw all its threads end. */
static bool is_dead(int fd, const struct etch_soft_pool *head)
{
    uint32_t word, used = head->used < head->slots ? head->used : head->slots;
    uint64_t ring = (1 + (uint64_t)head->chunks) * ETCH_SOFT_CHUNK;

    for (uint32_t i = 0; i < used; i++) {
        uint64_t at = sizeof(*head) + i * ring + offsetof(struct etch_soft_ring, lock);

        if (!read_at(fd, &word, sizeof(word), at) || (word && !(word & ETCH_SOFT_GONE)))
            return false;
    }
    return true;
}

/* A pool of a process that ended well keeps the rings that were used. The space of the others comes back. */
static void shrink(int fd, const struct etch_soft_pool *head, struct stat *st)
{
    uint64_t size = sizeof(*head) + head->used * (1 + (uint64_t)head->chunks) * ETCH_SOFT_CHUNK;

    if (head->used < head->slots && (uint64_t)st->st_size > size && call3(__NR_ftruncate, fd, (long)size, 0) == 0)
        call3(__NR_fstat, fd, (long)st, 0);
}

/* The pools of processes that passed go first, the oldest first. */
static bool goes_first(const struct etch_soft_folder *f, bool passed, const struct stat *st)
{
    return !f->oldest[0] || (passed != f->oldest_passed ? passed : (int64_t)st->st_mtime < f->oldest_time);
}

static void weigh(struct etch_soft_folder *f, int fd, const char *name, struct stat *st)
{
    union {
        char bytes[offsetof(struct etch_soft_pool, words_reserved)];
        uint64_t aligned;
    } start;
    const struct etch_soft_pool *head = (const struct etch_soft_pool *)(const void *)start.bytes;
    bool ours = st->st_uid == f->uid && read_at(fd, start.bytes, sizeof(start.bytes), 0) &&
                head->magic == ETCH_SOFT_MAGIC && head->version == ETCH_SOFT_VERSION;
    bool dead = ours && is_dead(fd, head), passed = dead && head->begun && head->well >= head->begun;

    if (passed)
        shrink(fd, head, st);
    f->passed += passed;
    f->total += (uint64_t)st->st_blocks * 512;
    if (!dead || !(f->pressed || passed) || length(name) >= sizeof(f->oldest) || !goes_first(f, passed, st))
        return;
    put(f->oldest, name, length(name) + 1);
    f->oldest_time = (int64_t)st->st_mtime;
    f->oldest_passed = passed;
}

static void look_at(struct etch_soft_folder *f, const char *name)
{
    int fd = (int)call6(__NR_openat, f->fd, (long)name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0, 0, 0);
    struct stat st;

    if (fd < 0)
        return;
    if (call3(__NR_fstat, fd, (long)&st, 0) == 0 && S_ISREG(st.st_mode)) {
        if (st.st_size == 0)
            f->empties++;
        else
            weigh(f, fd, name, &st);
    }
    call3(__NR_close, fd, 0, 0);
}

struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t kind;
    char name[];
};

/* All pools are weighed. */
static void look_through(struct etch_soft_folder *f)
{
    char buffer[1024] __attribute__((aligned(8)));
    long got;

    f->total = f->empties = f->passed = 0;
    f->oldest[0] = '\0';
    call3(__NR_lseek, f->fd, 0, 0);
    while ((got = call3(__NR_getdents64, f->fd, (long)buffer, sizeof(buffer))) > 0)
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
            const struct entry *e = (const struct entry *)(buffer + at);

            if (ends_in(e->name, length(e->name), ETCH_SOFT_SUFFIX))
                look_at(f, e->name);
        }
}

/* The newest pools of processes that ended well stay. */
void etch_soft_folder_read(struct etch_soft_folder *f)
{
    look_through(f);
    for (int i = 0; i < 64 && f->passed >= PASSED && f->oldest[0]; i++) {
        if (call3(__NR_unlinkat, f->fd, (long)f->oldest, 0) != 0)
            break;
        look_through(f);
    }
}

uint64_t etch_soft_folder_left(struct etch_soft_folder *f, uint64_t bound, uint64_t wanted)
{
    f->pressed = f->total + wanted > bound;
    for (int i = 0; i < 64 && f->total + wanted > bound; i++) {
        look_through(f);
        if (!f->oldest[0])
            break;
        f->removed += call3(__NR_unlinkat, f->fd, (long)f->oldest, 0) == 0;
    }
    return f->total < bound ? bound - f->total : 0;
}

/* NOLINTEND(clang-analyzer-core*) */
