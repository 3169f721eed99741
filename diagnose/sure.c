/* SPDX-License-Identifier: MIT */
/* See sure.h. */
#include "diagnose/sure.h"

#include "sketch/predictor.h"

#include <math.h>

uint64_t etch_sure_runs(uint32_t failed, uint32_t of, double confidence)
{
    double lo = 0, hi = 0;

    etch_wilson(failed, of, &lo, &hi);
    if (!failed || !of || lo <= 0)
        return 0;
    return lo >= 1 ? 1 : (uint64_t)ceil(log(1 - confidence) / log(1 - lo));
}

double etch_sure_rate(uint64_t passed, double confidence)
{
    return passed ? 1 - pow(1 - confidence, 1 / (double)passed) : 1;
}
