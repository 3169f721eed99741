/* SPDX-License-Identifier: MIT */
/* Is the time stamp counter of this machine fit to order events by, and does the kernel say how its own clock relates?
 */
#ifndef ETCH_CALIBRATE_CLOCK_H
#define ETCH_CALIBRATE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct etch_clock_health {
    bool constant;           /* ticks at one rate whatever the core's frequency */
    bool nonstop;            /* also in deep sleep */
    bool rdtscp;             /* stamp and CPU in one instruction */
    char model[64];          /* the CPU's name */
    char clocksource[32];    /* the kernel's own choice; "tsc": the kernel trusts the TSC */
    bool perf_clock_known;   /* whether the next line could be found out */
    bool perf_clock_offered; /* perf's mmap page has the conversion to TSC */
};

/* Reads it off `root` ("" for this machine, or for the tree that the environment's ETCH_CLOCK_ROOT names: tests have
 * one of their own) and, for perf's clock, off the running kernel. */
void etch_clock_health_read(struct etch_clock_health *health, const char *root);

/* True if stamps of different CPUs may be compared at all. */
bool etch_clock_orders(const struct etch_clock_health *health);

#endif
