/* SPDX-License-Identifier: MIT */
/* Calls through pointers, as the software recorder must follow them: to functions with a recorder and without, as last
 * calls, in recursion, and with chunks that fill up at any place of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int step(int value);
typedef size_t measure(const char *text);
typedef int order(const void *a, const void *b);

static int half(int value)
{
    return value / 2;
}

static int grow(int value)
{
    return value % 5 == 3 ? value - 1 : 3 * value + 1;
}

/* The last call through a pointer may be a jump. */
static int last(int value)
{
    static step *const to[] = {half, grow};

    return to[value & 1](value);
}

static step *volatile steps[] = {half, grow, last};

static int descend(int depth, step *down)
{
    int sum = down(depth);

    for (int i = 0; i < 2 && depth > 0; i++)
        sum += descend(depth - 1 - i, steps[(unsigned)(depth + i) % 3]);
    return sum;
}

static int by_half(const void *a, const void *b)
{
    step *down = steps[0];

    return down(*(const int *)a) - down(*(const int *)b);
}

/* Called from outside only, where the recorder is restricted to it. */
__attribute__((noinline)) static int restricted(int value)
{
    int sum = 0;

    for (int i = 0; i < value % 7; i++)
        sum += i & 1 ? half(sum + i) : grow(sum);
    return sum;
}

int main(void)
{
    measure *volatile outside = strlen;
    order *volatile compare = by_half;
    int values[64], sum = 0;

    for (int i = 0; i < 64; i++)
        values[i] = i * 7919 % 101;
    qsort(values, 64, sizeof(values[0]), compare);
    for (int i = 0; i < 300; i++)
        sum += restricted(i) + (int)outside(&"text"[i % 4]) + last(i) + compare(values, values + i % 64);
    printf("%d\n", sum + descend(12, steps[1]));
    return 0;
}
