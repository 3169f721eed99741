/* SPDX-License-Identifier: MIT */
/* Private to the software recorder's runtime: declarations that its parts share, and replacements for a few functions
 * of libc. */
#ifndef ETCH_COLLECTOR_SOFT_RUNTIME_H
#define ETCH_COLLECTOR_SOFT_RUNTIME_H

#include "proto/soft_layout.h"

#include <asm/unistd.h>
#include <stdbool.h>
#include <stddef.h>

/* Functions that recorded code calls have a name that ends with the version of the calling convention between recorded
 * files. The linker therefore refuses objects of another version, whose calls would go wrong. */
#define SHARED __attribute__((visibility("default"))) /* one for all modules of a process */
#define HIDDEN __attribute__((visibility("hidden")))

#define EOWNERDEAD 130

struct etch_soft_recorder {
    struct etch_soft_pool *pool; /* NULL: nothing is recorded */
    uint8_t *nowhere;            /* what threads without a ring write to */
    uint32_t *here;              /* not 0 in the process that set the word, 0 in a child; NULL: not known */
    uint32_t chunks, slots, pid;
    bool started, robust, adopted;
    uint32_t permille; /* the budget; ETCH_SOFT_UNBOUNDED: none */
    struct etch_soft_request request;
};

extern SHARED struct etch_soft_recorder etch_soft_recorder;

/* Not 0: no stamps. Reading the time stamp counter would be a fault. */
extern SHARED uint32_t etch_soft_quiet;

/* Set by the library that records synchronisation, because it reads the counter too. NULL without that library. */
extern SHARED void (*etch_soft_quieting)(void);

extern HIDDEN uint8_t etch_soft_on;

/* In the lab (collector/lab/recorder.c), and NULL elsewhere: variables that take the place of the environment (NULL:
 * none do), and an address near which memory is wanted. The program's own addresses are then the same with and without
 * a recorder. */
extern HIDDEN char **etch_soft_settings(void) __attribute__((weak));
extern HIDDEN long etch_soft_place(void) __attribute__((weak));

/* Makes the pool that etch asked for. The caller has the request, on a stack with room. */
HIDDEN void etch_soft_open_late(void);

/* Fills in the struct etch_soft_door of this module. */
HIDDEN void etch_soft_open_door(bool secure);

/* In the child, after fork. */
HIDDEN void etch_soft_forked(void);

extern int pthread_mutex_trylock(void *mutex) __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));

static inline long call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long call3(long number, long a, long b, long c)
{
    return call6(number, a, b, c, 0, 0, 0);
}

/* Not memcpy: libc's may use vector registers, and may be the program's own. */
static inline void put(void *to, const void *from, size_t size)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static inline size_t length(const char *text)
{
    size_t n = 0;

    while (text[n])
        n++;
    return n;
}

static inline bool is_same(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static inline bool ends_in(const char *text, size_t n, const char *with)
{
    size_t k = length(with);

    return n > k && is_same(text + n - k, with, k);
}

/* The value of a variable of the environment; NULL: it is not set. */
static inline const char *etch_soft_variable(char *const *environment, const char *name)
{
    for (; environment && *environment; environment++) {
        size_t i = 0;

        while (name[i] && (*environment)[i] == name[i])
            i++;
        if (!name[i] && (*environment)[i] == '=')
            return *environment + i + 1;
    }
    return NULL;
}

/* Returns true to stop. */
typedef bool etch_soft_on_line(void *context, const char *line, size_t size);

/* Hands out the lines of /proc/self/maps. Lines that are too long are cut. False: the file cannot be read. */
HIDDEN bool etch_soft_each_mapping(etch_soft_on_line *take, void *context);

HIDDEN void etch_soft_note_maps(struct etch_soft_pool *pool);

/* Notes arguments, paths, times and the namespace of the process. */
HIDDEN void etch_soft_note_process(struct etch_soft_pool *pool, int argc, char *const *argv);

#endif
