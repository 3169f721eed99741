/* SPDX-License-Identifier: MIT */
/* setjmp and longjmp, out of deep calls, again and again. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf place;

static __attribute__((noinline)) int dive(int n)
{
    if (n == 0)
        longjmp(place, 1);
    return dive(n - 1) + 1;
}

static __attribute__((noinline)) int attempt(int n)
{
    if (setjmp(place) == 0)
        return dive(n);
    return n;
}

int main(void)
{
    int sum = 0;

    for (int i = 0; i < 100; i++)
        sum += attempt(i);
    printf("jumps %d\n", sum);
    return 0;
}
