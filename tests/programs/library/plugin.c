/* SPDX-License-Identifier: MIT */
/* The library that the program loads by itself. */
static int *where; //@where

int plugin_start(int n)
{
    if (n > 0) //@n
        where = &n;
    *where = 1; //@loaded
    return 0;
}
