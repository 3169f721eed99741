/* SPDX-License-Identifier: MIT */
/* Reading the time stamp counter at a known place between other instructions. */
#ifndef ETCH_CALIBRATE_STAMP_H
#define ETCH_CALIBRATE_STAMP_H

#include <stdint.h>

/* After everything before it in this thread has executed, before anything behind it starts. Stores before it may still
 * wait in the store buffer. `cpu` as Linux numbers it (the low 12 bits of TSC_AUX). */
static inline uint64_t etch_stamp(uint32_t *cpu)
{
    uint32_t lo, hi, aux;

    __asm__ volatile("rdtscp\n\tlfence" : "=a"(lo), "=d"(hi), "=c"(aux) : : "memory");
    *cpu = aux & 0xfff;
    return (uint64_t)hi << 32 | lo;
}

/* The same without the CPU. */
static inline uint64_t etch_stamp_ordered(void)
{
    uint32_t lo, hi;

    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(lo), "=d"(hi) : : "memory");
    return (uint64_t)hi << 32 | lo;
}

#endif
