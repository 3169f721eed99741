/* SPDX-License-Identifier: MIT */
/* hits N: writes a variable N times; the wall time of that in ns per write. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile long watched;

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000;
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < n; i++)
        watched = i;
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.1f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n);
    return 0;
}
