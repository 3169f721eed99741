// SPDX-License-Identifier: MIT
// A loop that runs to <= writes one element too many, over the pointer behind the array.
#include "../corpus.h"

struct row {
    long cells[4];
    long *sum;
};

static void fill(struct row *r, unsigned n)
{
#ifdef FIXED
    for (unsigned i = 0; i < n && i < 4; i++)
#else
    for (unsigned i = 0; i <= n && i <= 4; i++)     //@loop
#endif
        r->cells[i] = i;                            //@write
}

int main(void)
{
    long total = 0;
    struct row *r = calloc(1, sizeof(*r));          //@make

    r->sum = &total;                                //@sum
    fill(r, 1 + draw(4));                           //@fill
    *r->sum += r->cells[0];                         //@use
    return 0;
}
