/* SPDX-License-Identifier: MIT */
#include "conventions.h"

#include <stdarg.h>

static int steps;

/* So that each leaves a byte. */
static int odd(long x)
{
    steps++;
    return x % 2 != 0;
}

void nothing(int *x)
{
    if (odd(*x))
        ++*x;
    else
        *x += 3;
}

bool truth(int x)
{
    return odd(x) ? x > 3 : x < 2;
}

signed char tiny(int x)
{
    return (signed char)(odd(x) ? -x : x * 2);
}

unsigned short narrow(int x)
{
    return (unsigned short)(odd(x) ? 65535 - x : x);
}

long wide(long x)
{
    return odd(x) ? x << 40 : -x;
}

const char *text(int x)
{
    return odd(x) ? "odd" : "even";
}

float single(float x)
{
    return odd((long)x) ? x / 2 : x * 3;
}

double twice(double x)
{
    return odd((long)x) ? x / 4 : x * 2;
}

long double longer(long double x)
{
    return odd((long)x) ? x / 8 : x * 5;
}

struct pair two(long a, long b)
{
    return odd(a) ? (struct pair){b, a} : (struct pair){a, b};
}

struct mixed both(double a, long b)
{
    return odd(b) ? (struct mixed){-a, b} : (struct mixed){a, -b};
}

struct floats few(float a, float b)
{
    return odd((long)a) ? (struct floats){b, a} : (struct floats){a, b};
}

struct large many(long x)
{
    struct large l = {{x, x + 1, x + 2, x + 3, x + 4, x + 5}};

    if (odd(x))
        l.v[3] = -1;
    return l;
}

struct small short_of(int x)
{
    struct small s = {{(char)x, (char)(x + 1), (char)(x + 2)}};

    if (odd(x))
        s.c[1] = 0;
    return s;
}

__int128 huge(long x)
{
    return odd(x) ? (__int128)x << 70 : -(__int128)x;
}

double complex turned(double complex z)
{
    return odd((long)creal(z)) ? z * I : z;
}

int eight(int a, int b, int c, int d, int e, int f, int g, int h)
{
    return odd(h) ? a - b + c - d + e - f + g - h : a * h;
}

double ten(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j)
{
    return odd((long)j) ? a - b + c - d + e - f + g - h + i - j : a * j;
}

long by_value(struct large v, int i)
{
    return odd(i) ? v.v[i % 6] : v.v[0] + v.v[5];
}

int variable(int n, ...)
{
    va_list all;
    int sum = 0;

    va_start(all, n);
    for (int i = 0; i < n; i++)
        sum += odd(i) ? va_arg(all, int) : -va_arg(all, int);
    va_end(all);
    return sum;
}

long through(long (*f)(long), long x)
{
    return odd(x) ? f(x) + 1 : f(x + 1);
}

double through_double(double (*f)(double), double x)
{
    return odd((long)x) ? f(x) + 1 : f(x + 1);
}

struct pair through_pair(struct pair (*f)(long, long), long a, long b)
{
    return odd(a) ? f(a, b) : f(b, a);
}

struct large through_large(struct large (*f)(long), long x)
{
    return odd(x) ? f(x) : f(-x);
}

/* The files do not agree on what these return. */
void returns_nothing(int *x);
void returns_nothing(int *x)
{
    *x += odd(*x) ? 1 : 2;
}

long returns_more(int x);
long returns_more(int x)
{
    return odd(x) ? 7 : (long)x << 33 | 5;
}

/* The same code on two ways, which the compiler keeps once. */
static int rank_of(int (*f)(int), int x, int other)
{
    int r = f(x);

    if (r > 64 && other > 64)
        return r >= 67 || other >= 67 ? 67 : 65;
    return (r <= 64 ? other : r) | 64;
}

int same(int which, int a, int (*f)(int))
{
    int r = f(a);

    if (which == 2)
        r = rank_of(f, a + 1, r);
    else if (which == 1)
        r = rank_of(f, a - 1, r);
    else if (r % 7 == 0)
        r = 65;
    if (r < 66)
        return 1;
    return r == 66 ? steps % 2 : steps >= 67;
}
