/* SPDX-License-Identifier: MIT */
/* A null pointer, some calls deep. */
#include <stdio.h>

struct node {
    struct node *next;
    int value;
};

static __attribute__((noinline)) int length(const struct node *n)
{
    int sum = 0;

    for (int i = 0; i < 4; i++) {
        sum += n->value;
        n = n->next;
    }
    return sum;
}

int main(void)
{
    struct node c = {NULL, 3}, b = {&c, 2}, a = {&b, 1};

    puts("segv");
    fflush(stdout);
    return length(&a);
}
