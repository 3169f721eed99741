/* SPDX-License-Identifier: MIT */
/* Functions of every kind of argument and result, in one file, called from another: see conventions.c. */
#ifndef ETCH_TESTS_SOFT_CONVENTIONS_H
#define ETCH_TESTS_SOFT_CONVENTIONS_H

#include <complex.h>
#include <stdbool.h>

struct pair {
    long a, b;
};

struct mixed {
    double a;
    long b;
};

struct floats {
    float a, b;
};

struct large {
    long v[6];
};

struct small {
    char c[3];
};

void nothing(int *x);
bool truth(int x);
signed char tiny(int x);
unsigned short narrow(int x);
long wide(long x);
const char *text(int x);
float single(float x);
double twice(double x);
long double longer(long double x);
struct pair two(long a, long b);
struct mixed both(double a, long b);
struct floats few(float a, float b);
struct large many(long x);
struct small short_of(int x);
__int128 huge(long x);
double complex turned(double complex z);
int eight(int a, int b, int c, int d, int e, int f, int g, int h);
double ten(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j);
long by_value(struct large v, int i);
int variable(int n, ...);
long through(long (*f)(long), long x);
double through_double(double (*f)(double), double x);
struct pair through_pair(struct pair (*f)(long, long), long a, long b);
struct large through_large(struct large (*f)(long), long x);
int same(int which, int a, int (*f)(int));

#endif
