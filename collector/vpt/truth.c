/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* The truth log; see truth.h. */
#include "collector/vpt/truth.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW (1u << 20)
#define LINE 32u

static bool move_window(struct etch_vpt_truth *t, uint64_t offset)
{
    void *window;

    if (t->window)
        munmap(t->window, WINDOW);
    t->window = NULL;
    t->offset = offset & ~(uint64_t)4095;
    t->used = offset & 4095;
    if (posix_fallocate(t->fd, (off_t)t->offset, WINDOW) != 0)
        return false;
    window = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, (off_t)t->offset);
    if (window == MAP_FAILED)
        return false;
    t->window = window;
    return true;
}

/* The end of the text in a file. Zeros may follow it. */
static uint64_t text_end(int fd)
{
    struct stat st;
    uint64_t end;
    char c;

    if (fstat(fd, &st) < 0)
        return 0;
    for (end = (uint64_t)st.st_size; end; end--)
        if (pread(fd, &c, 1, (off_t)end - 1) != 1 || c)
            break;
    return end;
}

void etch_vpt_truth_open(struct etch_vpt_truth *t, const char *folder, uint32_t pid, uint32_t tid)
{
    char path[4200];
    int fd;

    memset(t, 0, sizeof(*t));
    snprintf(path, sizeof(path), "%s/%u.%u.truth", folder, pid, tid);
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    t->fd = fcntl(fd, F_DUPFD_CLOEXEC, 512); /* out of the way of the target's own numbers */
    close(fd);
    if (t->fd < 0 || !move_window(t, text_end(t->fd)))
        etch_vpt_truth_abandon(t);
}

void etch_vpt_truth_add(struct etch_vpt_truth *t, uint64_t ip, bool repeats)
{
    static const char digits[] = "0123456789abcdef";
    unsigned n = ip ? (67u - (unsigned)__builtin_clzll(ip)) / 4 : 1;

    if (!t->window || (repeats && t->again && ip == t->last))
        return;
    if (t->used + LINE > WINDOW && !move_window(t, t->offset + t->used))
        return;
    for (unsigned i = n; i; i--)
        t->window[t->used++] = (uint8_t)digits[ip >> 4 * (i - 1) & 15];
    t->window[t->used++] = '\n';
    t->last = ip;
    t->again = repeats;
}

void etch_vpt_truth_fault(struct etch_vpt_truth *t)
{
    if (!t->window || !t->used)
        return;
    memcpy(t->window + t->used - 1, " fault\n", 7); /* LINE leaves room */
    t->used += 6;
    t->again = false;
}

void etch_vpt_truth_close(struct etch_vpt_truth *t)
{
    uint64_t end = t->offset + t->used;

    if (t->fd <= 0)
        return;
    if (t->window)
        munmap(t->window, WINDOW);
    if (ftruncate(t->fd, (off_t)end) < 0) {
        /* then the zeros stay, as after a kill */
    }
    close(t->fd);
    memset(t, 0, sizeof(*t));
}

void etch_vpt_truth_abandon(struct etch_vpt_truth *t)
{
    if (t->window)
        munmap(t->window, WINDOW);
    if (t->fd > 0)
        close(t->fd);
    memset(t, 0, sizeof(*t));
}
