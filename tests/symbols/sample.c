/* SPDX-License-Identifier: MIT */
/* Code with what makes symbols hard: inlining several levels deep, cold parts, static functions, a tail call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int add(int a, int b)
{
    return a + b;
}

static inline int square_sum(int a, int b)
{
    int s = add(a * a, b * b);

    return add(s, 1);
}

__attribute__((noinline, cold)) static void complain(const char *what)
{
    fprintf(stderr, "bad: %s\n", what);
    abort();
}

__attribute__((noinline)) int work(int n)
{
    int total = 0;

    for (int i = 0; i < n; i++) {
        total += square_sum(i, n);
        if (__builtin_expect(total < 0, 0))
            complain("negative");
    }
    return total;
}

__attribute__((noinline)) int forward(int n)
{
    return work(n + 1);
}

static int compare(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return add(*x, -*y);
}

int main(int argc, char **argv)
{
    int v[4] = {4, 2, argc, 1};

    qsort(v, 4, sizeof(v[0]), compare);
    printf("%d %d %zu\n", forward(argc), v[0], strlen(argv[0]));
    return 0;
}
