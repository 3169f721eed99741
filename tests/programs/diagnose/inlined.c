/* SPDX-License-Identifier: MIT */
/* A null pointer that never is in memory once the compiler has inlined the two functions that hand it on. */
#include "turn.h"

#include <stddef.h>

struct book {
    long shelf;
    int pages;
};

static struct book books[3] = {{1, 10}, {2, 20}, {3, 30}};

static struct book *find(long shelf)
{
    for (size_t i = 0; i < 3; i++)
        if (books[i].shelf == shelf)
            return &books[i];
    return NULL;
}

static int pages_of(const struct book *book)
{
    return *(const volatile int *)&book->pages; //@use
}

int main(void)
{
    return pages_of(find(turn() % 2 ? 7 : 2)) == 20 ? 0 : 1;
}
