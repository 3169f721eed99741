/* SPDX-License-Identifier: MIT */
/* A global that is written and read in every way that a watch tells apart. */
#include <stdio.h>

volatile int shared = 5;
volatile struct {
    char text[24];
} large;

int main(void)
{
    int x;

    shared = 7;                                       /* a write */
    x = shared;                                       /* a read */
    shared += 4;                                      /* a read and a write */
    __atomic_fetch_add(&shared, 9, __ATOMIC_SEQ_CST); /* both in one */
    ((volatile char *)&shared)[1] = 1;                /* a part of it */
    large.text[20] = 'x';
    printf("watched %d\n", x);
    return 0;
}
