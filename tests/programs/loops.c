/* SPDX-License-Identifier: MIT */
/* Nested loops and a string instruction, with a sum as the witness. */
#include <stdio.h>
#include <string.h>

static unsigned sum(unsigned n)
{
    unsigned s = 0;

    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            s = s * 31 + (i ^ j);
    return s;
}

int main(void)
{
    char a[300], b[300];
    size_t n = sizeof(a);
    void *to = a;

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(7) : "memory");
    memcpy(b, a, sizeof(b));
    printf("loops %u %d\n", sum(300), b[299]);
    return 0;
}
