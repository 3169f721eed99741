/* SPDX-License-Identifier: MIT */
/* The other file of worlds.c. */
#include "worlds.h"

int hook(int x)
{
    return x ^ 5;
}

static int seen;

int other_step(int x)
{
    seen += x % 3 == 0;
    return seen * 10 + add_one(x) + count_calls() % 2;
}

worker other_worker(void)
{
    return other_step;
}

worker other_add_one(void)
{
    return add_one;
}
