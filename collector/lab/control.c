/* SPDX-License-Identifier: MIT */
/* How control begins, in the program and in a child of fork. */
#include "collector/lab/runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern char __executable_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

void *lab_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

void lab_find_real(void)
{
#define LAB_REAL(result, name, ...) *(void **)&lab_real_##name = dlsym(RTLD_NEXT, #name);
#include "collector/lab/real.h"
#undef LAB_REAL
}

/* The program sees the environment that it would have without the lab. */
static int take_variable(void)
{
    static const char name[] = ETCH_LAB_VARIABLE "=";
    extern char **environ;

    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, name, sizeof(name) - 1) == 0) {
            int fd = atoi(*e + sizeof(name) - 1);

            for (; *e; e++)
                e[0] = e[1];
            return fd;
        }
    return -1;
}

static struct etch_lab_shared *map_shared(int fd)
{
    struct etch_lab_shared *shared = MAP_FAILED;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)sizeof(*shared))
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return shared != MAP_FAILED && shared->magic == ETCH_LAB_MAGIC && shared->size == sizeof(*shared) ? shared : NULL;
}

__attribute__((constructor(101))) static void begin(void)
{
    struct etch_lab_shared *shared;

    lab_find_real();
    shared = map_shared(take_variable());
    if (!shared)
        return;
    memcpy(shared->learnt, shared->sites, sizeof(shared->learnt));
    shared->started = 1;
    shared->base = LAB_OBJECT(__executable_start);
    shared->end = LAB_OBJECT(_end);
    shared->hash = UINT64_C(14695981039346656037);
    if (shared->debugged)
        lab_halt_await(shared);
    lab_take_control(shared);
    lab_signals_begin();
    lab_input_begin();
}

/* In a child of fork only the thread that forked lives on, and its schedule is not the parent's. The child is
 * controlled too, with memory of its own, and what it does is not recorded. */
void lab_control_child(void)
{
    struct etch_lab_shared *parent = lab;
    void *at = mmap(NULL, sizeof(*parent), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    lab = NULL;
    if (at == MAP_FAILED)
        return;
    memcpy(at, parent, offsetof(struct etch_lab_shared, started));
    lab_in_child(parent, at);
    lab_timers_forget();
    lab_signals_forget();
}
