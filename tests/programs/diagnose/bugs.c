/* SPDX-License-Identifier: MIT */
/* Two bugs in one program, and each in its own runs; the second by two ways. */
#include "turn.h"

#include <assert.h>

static int *first = &(int){1}, second = 1;

static int read_first(void)
{
    return *first; //@first
}

static int check(int n)
{
    assert(n != 0); //@second
    return n;
}

static int by_day(void)
{
    return check(second);
}

static int by_night(void)
{
    return check(second);
}

int main(void)
{
    int n = turn() % 6;

    if (n == 0 || n == 2)
        first = NULL; //@null
    if (n == 1 || n == 4)
        second = 0; //@zero
    return read_first() + (n == 4 ? by_night() : by_day()) ? 0 : 1;
}
