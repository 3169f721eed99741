/* SPDX-License-Identifier: MIT */
/* The monotonic clock; see time.h. */
#include "base/time.h"

#include <time.h>

uint64_t etch_time_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double etch_time_seconds(void)
{
    return (double)etch_time_ns() / 1e9;
}
