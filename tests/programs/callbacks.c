/* SPDX-License-Identifier: MIT */
/* qsort and bsearch: indirect calls into the program from the library. */
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

int main(void)
{
    int v[500], key = 0, *found;
    unsigned x = 12345;

    for (int i = 0; i < 500; i++)
        v[i] = (int)((x = x * 1103515245u + 12345u) >> 16 & 0x7fff);
    key = v[77];
    qsort(v, 500, sizeof(v[0]), compare);
    found = bsearch(&key, v, 500, sizeof(v[0]), compare);
    printf("callbacks %d %d %d\n", v[0], v[499], found && *found == key);
    return 0;
}
