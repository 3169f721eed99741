/* SPDX-License-Identifier: MIT */
/* A call to nowhere: the instruction that fails cannot even be fetched. */
#include <stdio.h>

static void (*volatile nowhere)(void) = (void (*)(void))0x1234;

int main(void)
{
    puts("wild");
    fflush(stdout);
    nowhere();
    return 0;
}
