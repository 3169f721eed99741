// SPDX-License-Identifier: MIT
// Recorded code that is entered far more often than it asks for room: leaves that a library calls, and a round whose way back is longjmp.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 20000 };

static unsigned values[N];
static unsigned long below, above;
static volatile unsigned rounds, odd;
static jmp_buf again;
static void (*volatile back)(jmp_buf, int) = longjmp;

static int compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    if (x < y) {
        below++;
        return -1;
    }
    if (x > y) {
        above += 3;
        return 1;
    }
    return 0;
}

static void jump(void)
{
    setjmp(again);
    rounds++;
    if (rounds & 1)
        odd++;
    if (rounds < 5 * N)
        back(again, 1);
}

int main(void)
{
    unsigned seed = 7, wrong = 0;

    for (int i = 0; i < N; i++)
        values[i] = seed = seed * 1664525u + 1013904223u;
    qsort(values, N, sizeof(values[0]), compare);
    jump();
    for (int i = 1; i < N; i++)
        wrong += values[i - 1] > values[i];
    printf("%u %lu %lu %u %u\n", wrong, below, above, rounds, odd);
    return 0;
}
