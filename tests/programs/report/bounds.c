/* SPDX-License-Identifier: MIT */
/* Calls work() 2,000 times, and measures each call itself, from within and from around. Prints the rate-free ticks:
 * sum, median, 90th and 99th percentile and maximum, of both. Compiles as C and as C++. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 2000 };

static unsigned long long within[CALLS], around[CALLS];

__attribute__((noinline)) static unsigned spin(unsigned rounds)
{
    unsigned x = rounds;

    for (volatile unsigned i = 0; i < rounds; i = i + 1)
        x = x * 33 ^ i;
    return x;
}

__attribute__((noinline)) static unsigned work(unsigned n)
{
    unsigned long long begin = __builtin_ia32_rdtsc();
    unsigned x = spin(n % 7 * 50);

    if (n % 10 == 0)
        x += spin(5000);
    if (n % 200 == 0) {
        struct timespec time = {0, 200000};

        nanosleep(&time, NULL);
    }
    within[n] = __builtin_ia32_rdtsc() - begin;
    return x;
}

static int compare(const void *a, const void *b)
{
    unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;

    return x < y ? -1 : x > y;
}

static void print(unsigned long long *ticks)
{
    unsigned long long sum = 0;

    for (int i = 0; i < CALLS; i++)
        sum += ticks[i];
    qsort(ticks, CALLS, sizeof(*ticks), compare);
    printf("%llu %llu %llu %llu %llu\n", sum, ticks[CALLS / 2 - 1], ticks[CALLS * 9 / 10 - 1], ticks[CALLS * 99 / 100 - 1],
           ticks[CALLS - 1]);
}

int main(void)
{
    unsigned sum = 0;

    for (unsigned n = 0; n < CALLS; n++) {
        unsigned long long begin = __builtin_ia32_rdtsc();

        sum += work(n);
        around[n] = __builtin_ia32_rdtsc() - begin;
    }
    fprintf(stderr, "%u\n", sum);
    print(within);
    print(around);
    return 0;
}
