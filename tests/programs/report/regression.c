/* SPDX-License-Identifier: MIT */
/* EXTRA more rounds in hash() are a regression of that function alone. Of 100 rounds one is 1 %. Compiles as C and as
 * C++. */
#include <stdio.h>

#ifndef EXTRA
#define EXTRA 0
#endif

__attribute__((noinline)) static unsigned mix(unsigned a)
{
    for (int i = 0; i < 20; i++)
        a = a * 31 + 7;
    return a;
}

__attribute__((noinline)) static unsigned hash(unsigned a, int rounds)
{
    unsigned x = a;

    for (volatile int i = 0; i < rounds; i = i + 1)
        x = x * 33 ^ (unsigned)i;
    return x;
}

__attribute__((noinline)) static unsigned parse(unsigned a)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 50; i++)
        sum += mix(a + i);
    return sum;
}

int main(void)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 300; i++)
        sum += parse(i) + hash(i, 100 + EXTRA);
    printf("%u\n", sum);
    return 0;
}
