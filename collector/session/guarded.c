/* SPDX-License-Identifier: MIT */
/* See guarded.h. */
#include "collector/session/guarded.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct etch_guarded {
    uint8_t *at;
    size_t size;
    volatile sig_atomic_t cut;
    struct etch_guarded *next;
};

static struct etch_guarded *guarded;
static struct sigaction before;
static bool installed;

static void as_before(void)
{
    sigaction(SIGBUS, &before, NULL);
    installed = false;
}

/* Maps zeros in place of the missing part. Any other SIGBUS gets its former action. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    long page = sysconf(_SC_PAGESIZE);

    (void)number;
    (void)context;
    for (struct etch_guarded *g = guarded; g; g = g->next) {
        uintptr_t start = (uintptr_t)g->at, from = address & ~((uintptr_t)page - 1);

        if (address < start || address - start >= g->size)
            continue;
        g->cut = 1;
        if (mmap((void *)from, g->size - (from - start), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
            return;
    }
    as_before();
}

static int install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER}, now;

    if (sigaction(SIGBUS, NULL, &now) < 0)
        return -1;
    if (now.sa_sigaction == on_bus_error)
        return 0;
    before = now;
    installed = sigaction(SIGBUS, &action, NULL) == 0;
    return installed ? 0 : -1;
}

struct etch_guarded *etch_guarded_map(int fd, size_t size, bool shared)
{
    struct etch_guarded *g = calloc(1, sizeof(*g));
    struct stat st;
    void *at = MAP_FAILED;

    if (g && install() == 0 && fstat(fd, &st) == 0) {
        errno = ENODATA;
        if (S_ISREG(st.st_mode) && st.st_size >= 0 && (uint64_t)st.st_size >= size)
            at = mmap(NULL, size, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    }
    if (at == MAP_FAILED) {
        free(g);
        return NULL;
    }
    g->at = at;
    g->size = size;
    g->next = guarded;
    guarded = g;
    return g;
}

void *etch_guarded_at(const struct etch_guarded *mapping)
{
    return mapping->at;
}

bool etch_guarded_cut(const struct etch_guarded *mapping)
{
    return mapping->cut;
}

void etch_guarded_unmap(struct etch_guarded *mapping)
{
    struct etch_guarded **link = &guarded;

    if (!mapping)
        return;
    while (*link && *link != mapping)
        link = &(*link)->next;
    if (*link)
        *link = mapping->next;
    munmap(mapping->at, mapping->size);
    free(mapping);
}

void etch_guarded_forget(void)
{
    if (installed)
        as_before();
}
