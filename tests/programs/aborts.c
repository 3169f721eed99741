/* SPDX-License-Identifier: MIT */
/* A failed assertion. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    (void)argv;
    puts("aborts");
    fflush(stdout);
    assert(argc > 100);
    return 0;
}
