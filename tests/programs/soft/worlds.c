/* SPDX-License-Identifier: MIT */
/* All that could tell two copies of a function apart: static variables, addresses of functions and of labels, aliases,
 * weak functions, variable arguments, callbacks, setjmp, constructors, assembly with a label that has a name. It prints
 * the same whatever runs. */
#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int total;
static worker chosen;
static __thread int mine = 3;
static jmp_buf back;

int add(int n, ...)
{
    va_list all;
    int sum = 0;

    va_start(all, n);
    for (int i = 0; i < n; i++)
        sum += va_arg(all, int);
    va_end(all);
    return sum;
}

int count_calls(void)
{
    static int calls;

    return ++calls;
}

int add_one(int x)
{
    total += x & 1;
    return x + 1;
}

__attribute__((weak)) int hook(int x)
{
    return x - 1000;
}

static int real(int x)
{
    return x % 5 ? x * 3 : mine++;
}
int by_alias(int x) __attribute__((alias("real")));

static int __attribute__((noinline)) interpret(const char *code, int x)
{
    static const void *const to[] = {&&stop, &&up, &&down, &&square};

#define NEXT goto *to[*code++ - '0']
    NEXT;
up:
    x++;
    NEXT;
down:
    x -= 2;
    NEXT;
square:
    x = x * x % 10007;
    NEXT;
stop:
    return x;
}

/* Labels that go out of the function: it cannot be there twice. */
static const void *const *leaked;

static int __attribute__((noinline)) leak(int at)
{
    static const void *labels[] = {&&one, &&two};

    if (at < 0) {
        leaked = labels;
        return 0;
    }
    goto *leaked[at];
one:
    return 11;
two:
    return 22;
}

static int __attribute__((noinline)) named(int x)
{
    int r;

    __asm__ volatile("movl %1, %0\nworlds_named_label:\naddl $1, %0" : "=&r"(r) : "r"(x));
    return r > 3 ? r : -r;
}

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    total++;
    return x < y ? -1 : x > y;
}

static int __attribute__((noinline)) dive(int depth)
{
    if (depth == 0)
        longjmp(back, 7);
    return dive(depth - 1) + 1;
}

__attribute__((constructor(101))) static void early(void)
{
    chosen = add_one;
    leak(-1);
    count_calls();
}

__attribute__((constructor)) static void later(void)
{
    count_calls();
}

int main(void)
{
    int numbers[] = {5, 3, 9, 1, 7, 2, 8, 6}, volatile_sum = 0;

    printf("same %d %d %d\n", chosen == add_one, other_add_one() == add_one, other_worker() == other_step);
    for (int i = 0; i < 50; i++)
        volatile_sum += chosen(i) + other_step(i) + hook(i) + by_alias(i) + add(3, i, 2, other_worker()(i));
    qsort(numbers, 8, sizeof(numbers[0]), compare);
    printf("%d %d %d %d\n", volatile_sum, numbers[0], numbers[7], total);
    printf("%d %d %d %d\n", interpret("1312310", 4), leak(0), leak(1), named(2) + named(9));
    printf("%d %d %d\n", setjmp(back) ? 70 : dive(5), count_calls(), mine);
    return 0;
}
