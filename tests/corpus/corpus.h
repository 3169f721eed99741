// SPDX-License-Identifier: MIT
// What the programs of the corpus share: a random pause, as work of varying length would make it. Nothing decides whether a
// run fails but how such pauses, or the input that was drawn, fall out.
#ifndef CORPUS_H
#define CORPUS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline unsigned draw(unsigned n)
{
    static __thread unsigned seed;
    struct timespec t;

    if (!seed) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        seed = (unsigned)t.tv_nsec * 2654435761u ^ (unsigned)getpid() ^ (unsigned)(size_t)&seed;
    }
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

// A pause of up to `us` microseconds.
static inline void window(unsigned us)
{
    struct timespec t = {0, (long)draw(us) * 1000};

    nanosleep(&t, NULL);
}

#define CHECK(ok) ((ok) ? (void)0 : abort())

#endif
