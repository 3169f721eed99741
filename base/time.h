/* SPDX-License-Identifier: MIT */
/* The clock that etch measures its own waits and limits by. The clocks of recordings are in calibrate/. */
#ifndef ETCH_BASE_TIME_H
#define ETCH_BASE_TIME_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t etch_time_ns(void);

/* The same in seconds. */
double etch_time_seconds(void);

#endif
