/* SPDX-License-Identifier: MIT */
/* Some hundred million instructions of mixed work in two threads, for measurements. An argument scales it. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static uint32_t collatz(uint32_t n)
{
    uint32_t steps = 0;
    uint64_t x = n;

    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        steps++;
    }
    return steps;
}

static void *work(void *argument)
{
    uint32_t *v = malloc(20000 * sizeof(*v)), seed = (uint32_t)(uintptr_t)argument, sum = 0;
    long rounds = (long)((uintptr_t)argument >> 32);

    for (long r = 0; r < rounds; r++) {
        for (int i = 0; i < 20000; i++)
            v[i] = seed = seed * 1103515245u + 12345u;
        qsort(v, 20000, sizeof(*v), compare);
        for (uint32_t i = 1; i < 20000; i++)
            sum += collatz(i) ^ v[i];
    }
    free(v);
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
    uintptr_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 5;
    pthread_t other;
    void *a, *b;

    pthread_create(&other, NULL, work, (void *)(rounds << 32 | 1));
    a = work((void *)(rounds << 32 | 2));
    pthread_join(other, &b);
    printf("busy %lu\n", (unsigned long)((uintptr_t)a ^ (uintptr_t)b));
    return 0;
}
