/* SPDX-License-Identifier: MIT */
/* busy [ROUNDS [KIND [THREADS]]]: work for measurements, some ten million instructions a round and thread. KIND is
 * mixed (sorting with a callback, and a loop whose branches cannot be foreseen), calls (recursion), jumps (a switch
 * through a table) or loop (straight code in a loop). */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long rounds = 5;
static uint32_t (*kind)(uint32_t);

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

static uint32_t mixed(uint32_t seed)
{
    uint32_t v[4000], sum = 0;

    for (int i = 0; i < 4000; i++)
        v[i] = seed = seed * 1103515245u + 12345u;
    qsort(v, 4000, sizeof(*v), compare);
    for (uint32_t i = 1; i < 4000; i++)
        sum += collatz(i) ^ v[i];
    return sum;
}

static __attribute__((noinline)) uint32_t fib(uint32_t n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint32_t calls(uint32_t seed)
{
    return fib(27 + (seed & 1));
}

static uint32_t jumps(uint32_t x)
{
    for (int i = 0; i < 600000; i++) {
        switch (x % 9) {
        case 0:
            x += 7;
            break;
        case 1:
            x ^= x << 3;
            break;
        case 2:
            x = x * 17 + 1;
            break;
        case 3:
            x = ~x;
            break;
        case 4:
            x -= 5;
            break;
        case 5:
            x ^= x >> 5;
            break;
        case 6:
            x += x << 2;
            break;
        case 7:
            x = x * 33;
            break;
        default:
            x++;
            break;
        }
    }
    return x;
}

static uint32_t loop(uint32_t x)
{
    for (int i = 0; i < 700000; i++) {
        x = x * 1664525u + 1013904223u;
        x ^= x >> 13;
        x += x << 7;
        x ^= x >> 17;
    }
    return x;
}

static void *work(void *argument)
{
    uint32_t sum = (uint32_t)(uintptr_t)argument;

    for (long r = 0; r < rounds; r++)
        sum = sum * 31 + kind(sum);
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
    const char *name = argc > 2 ? argv[2] : "mixed";
    long n = argc > 3 ? strtol(argv[3], NULL, 10) : 2;
    pthread_t threads[16];
    uintptr_t sum = 0;

    if (argc > 1)
        rounds = strtol(argv[1], NULL, 10);
    kind = strcmp(name, "calls") == 0   ? calls
           : strcmp(name, "jumps") == 0 ? jumps
           : strcmp(name, "loop") == 0  ? loop
                                        : mixed;
    for (long i = 0; i < n && i < 16; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1));
    for (long i = 0; i < n && i < 16; i++) {
        void *result;

        pthread_join(threads[i], &result);
        sum ^= (uintptr_t)result;
    }
    printf("busy %s %lu\n", name, (unsigned long)sum);
    return 0;
}
