/* SPDX-License-Identifier: MIT */
/* For address filters: functions that are entered by call and left by return, by a call of others, by a jump in the
 * tail and by a conditional branch, and that are interrupted by system calls. */
#include <stdio.h>
#include <unistd.h>

static volatile long sink;

__attribute__((noinline)) long outside(long x)
{
    return x ^ sink;
}

__attribute__((noinline)) long leaf(long x)
{
    for (int i = 0; i < 5; i++)
        x = x % 3 ? x * 5 + i : x / 3;
    return x;
}

__attribute__((noinline)) long within(long x)
{
    if (x & 4)
        return outside(x + 1); /* in the tail */
    x += leaf(x);
    if (x & 8)
        getppid();
    return x + outside(x);
}

__attribute__((noinline)) void finish(void)
{
    sink = 0;
}

int main(void)
{
    long sum = 0;

    for (int i = 0; i < 40; i++)
        sum += within(sum + i);
    finish();
    for (int i = 0; i < 10; i++)
        sum += leaf(i);
    printf("ranges %ld\n", sum);
    return 0;
}
