/* SPDX-License-Identifier: MIT */
/* Calls deeper than any return stack (64), and a mutual recursion. */
#include <stdio.h>

static __attribute__((noinline)) unsigned deep(unsigned n)
{
    return n ? deep(n - 1) * 3 + n : 1;
}

static unsigned odd(unsigned n);

static __attribute__((noinline)) unsigned even(unsigned n)
{
    return n ? odd(n - 1) : 1;
}

static __attribute__((noinline)) unsigned odd(unsigned n)
{
    return n ? even(n - 1) : 0;
}

static __attribute__((noinline)) unsigned fib(unsigned n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(void)
{
    printf("recursion %u %u %u\n", deep(500), even(100), fib(18));
    return 0;
}
