/* SPDX-License-Identifier: MIT */
/* A switch that becomes a jump table, and a table of functions. */
#include <stdio.h>

static unsigned a(unsigned x)
{
    return x + 1;
}
static unsigned b(unsigned x)
{
    return x * 3;
}
static unsigned c(unsigned x)
{
    return x ^ 0x55;
}

static unsigned (*const table[])(unsigned) = {a, b, c};

static __attribute__((noinline)) unsigned step(unsigned op, unsigned x)
{
    switch (op) {
    case 0:
        return x + 7;
    case 1:
        return x << 3;
    case 2:
        return x >> 2;
    case 3:
        return x * 17;
    case 4:
        return ~x;
    case 5:
        return x ^ 99;
    case 6:
        return x - 5;
    case 7:
        return x / 3;
    default:
        return x;
    }
}

int main(void)
{
    unsigned x = 1;

    for (unsigned i = 0; i < 5000; i++)
        x = step((x + i) % 10, table[x % 3](x)) + i;
    printf("switches %u\n", x);
    return 0;
}
