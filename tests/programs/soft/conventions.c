/* SPDX-License-Identifier: MIT */
/* Recorded code hands over the place in its ring in registers: whatever is passed and returned beside it must come through,
 * from file to file, by name and through pointers, to code with a recorder and without. */
#include "conventions.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int returns_nothing(int *x); /* void there */
int returns_more(int x);     /* long there */

static jmp_buf back;

static long leap(long x)
{
    if (x % 3 == 0)
        longjmp(back, (int)x + 1);
    return x;
}

/* Becomes a jump, in files without a recorder. */
static long hand_on(long x)
{
    return wide(x + 1);
}

static long deep(long n)
{
    return n <= 0 ? 0 : n % 2 ? deep(n - 1) + 1 : through(deep, n - 3);
}

static int next(int x)
{
    return x % 5 ? x + 1 : x - 1;
}

static double half(double x)
{
    return x > 2 ? x / 2 : x;
}

static struct pair swapped(long a, long b)
{
    return a > b ? (struct pair){b, a} : two(a, b);
}

static struct large filled(long x)
{
    struct large l = many(x);

    l.v[5] = x > 0 ? 9 : 8;
    return l;
}

static int ordered(const void *a, const void *b)
{
    return next(*(const int *)a) - next(*(const int *)b);
}

static void show(int i)
{
    struct large l = many(i);
    struct pair p = two(i, i + 7);
    struct mixed m = both(i, i * 3);
    struct floats f = few((float)i, 2);
    struct small s = short_of(i);
    double complex z = turned(i + 2 * I);
    int x = i;

    nothing(&x);
    printf("%d %d %d %d %ld %s\n", x, truth(i), tiny(i), narrow(i), wide(i), text(i));
    printf("%g %g %Lg %ld,%ld %g,%ld %g,%g\n", (double)single((float)i), twice(i), longer(i), p.a, p.b, m.a, m.b, (double)f.a,
           (double)f.b);
    printf("%ld,%ld %d,%d,%d %ld,%ld %g,%g\n", l.v[0], l.v[3], s.c[0], s.c[1], s.c[2], (long)huge(i), (long)(huge(i) >> 64),
           creal(z), cimag(z));
    printf("%d %g %ld %d\n", eight(i, 2, 3, 4, 5, 6, 7, i + 1), ten(i, 2, 3, 4, 5, 6, 7, 8, 9, i + 1), by_value(l, i),
           variable(3, i, i + 1, i + 2));
    returns_nothing(&x);
    printf("%d %d\n", x, returns_more(i));
}

/* The volatile pointers are called as they come; labs, sin and toupper have no recorder. */
static void through_pointers(int i)
{
    static long (*volatile longs[])(long) = {hand_on, labs, wide, deep};
    static double (*volatile doubles[])(double) = {half, fabs, twice, sin};
    static int (*volatile ints[])(int) = {next, toupper, abs};
    static struct pair (*volatile pairs[])(long, long) = {swapped, two};
    static void (*volatile nothings[])(int *) = {nothing};
    int x = i;
    struct pair p = through_pair(pairs[i % 2], i, 3), q = pairs[i % 2](i, 5);
    struct large l = through_large(filled, i);

    nothings[0](&x);
    printf("%ld %g %d %d\n", longs[i % 4](i - 9), doubles[i % 4](i - 9), ints[i % 3](i + 90), x);
    printf("%ld %g %ld,%ld %ld,%ld %ld,%ld\n", through(longs[i % 4], i), through_double(doubles[i % 4], i), p.a, p.b, q.a, q.b,
           l.v[1], l.v[5]);
    printf("%d %d\n", same(i % 3, 60 + i % 12, ints[i % 3]), same(i % 3, 66 - i % 2, next));
}

int main(void)
{
    int v[40];

    for (int i = 0; i < 30; i++) {
        show(i);
        through_pointers(i);
    }
    for (int i = 0; i < 40; i++)
        v[i] = i * 17 % 40;
    qsort(v, 40, sizeof(v[0]), ordered);
    for (volatile int i = 0; i < 20; i++)
        if (setjmp(back) == 0)
            v[i] += (int)through(leap, i);
        else
            v[i]++;
    for (int i = 0; i < 40; i++)
        printf("%d ", v[i]);
    printf("\n%ld\n", deep(60));
    return 0;
}
