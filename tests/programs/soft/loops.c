/* SPDX-License-Identifier: MIT */
/* Functions that are called once and run for long: their loops have live values of many kinds. They print the same
 * whichever copy of them runs, from whichever round on. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct point {
    double x, y, z;
    long n;
};

static volatile unsigned sink;
static unsigned rounds;

static NOINLINE unsigned step(unsigned n, unsigned k)
{
    if (n % 3 == k % 2)
        return n * 7;
    return n + k;
}

static NOINLINE unsigned nested(unsigned n)
{
    unsigned a = 1, b = 2;
    char text[64] = {0};

    for (unsigned i = 0; i < n; i++) {
        if (a % 5 == 0)
            b += a;
        else if (a & 2)
            b ^= i;
        else
            b -= 3;
        text[i % 64] = (char)b;
        for (unsigned j = i % 7; j > 0; j--) {
            a += b >> j;
            if (a & 8)
                sink++;
        }
        if (i % 16 == 0)
            a = step(a, i);
    }
    return a + b + (unsigned char)text[5];
}

/* The inner loop is the long one. It is left with values of the outer loop, which goes on afterwards. */
static NOINLINE unsigned inner(unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 3; i++) {
        unsigned seed = step(i + 1, n), mixed = step(seed, i) | 1;

        for (unsigned j = 0; j < n; j++) {
            seed = seed * 1103515245 + 12345;
            if (seed & 64)
                sum += seed >> 16;
            else
                sum ^= step(mixed, j);
        }
        sum += mixed + i;
    }
    return sum;
}

/* More arguments than registers, one of them by value, and a result in a vector register. */
static NOINLINE double many(int a, long b, double c, float d, struct point p, int e, int f, int g, short h, double i,
                            unsigned n)
{
    double sum = c;
    float small = d;

    do {
        sum += p.x * small - p.y / (n % 11 + 1);
        if ((long)sum % 3 == 0)
            small += 0.5f;
        p.n += a + b + e + f + g + h;
        if (small > 100)
            small -= i;
    } while (--n);
    return sum + p.n + small;
}

enum code { ADD, SUB, MUL, JUMP, PUSH, POP, CALL, STOP };

/* A switch in a loop that many back edges lead to. */
static NOINLINE long interpret(const unsigned char *code, unsigned n)
{
    long stack[16] = {0}, value = 1;
    unsigned top = 0, at = 0;

    for (;;) {
        switch (code[at++ % 64]) {
        case ADD:
            value += at;
            continue;
        case SUB:
            value -= stack[top % 16];
            continue;
        case MUL:
            value *= 3;
            continue;
        case JUMP:
            if (value & 1)
                at += 2;
            continue;
        case PUSH:
            stack[top++ % 16] = value;
            continue;
        case POP:
            value ^= stack[--top % 16];
            continue;
        case CALL:
            value += step((unsigned)value, at);
            continue;
        default:
            if (--n == 0)
                return value;
        }
    }
}

/* Only calls: the back edge writes no byte. */
static NOINLINE void calls(unsigned n)
{
    do
        sink += step(n, n + 1);
    while (--n);
}

static jmp_buf back;

static NOINLINE void leap(unsigned n)
{
    if (n % 5 == 0)
        longjmp(back, 1);
    sink += n;
}

/* A place to come back to, set before or after the function went dark. */
static NOINLINE unsigned leaps(volatile unsigned n)
{
    volatile unsigned caught = 0;

    if (setjmp(back))
        caught++;
    while (n) {
        n--;
        if (n % 7 == 1 && setjmp(back)) {
            caught += 2;
            continue;
        }
        leap(n);
    }
    return caught;
}

static NOINLINE int compare(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static NOINLINE int sorted(unsigned n)
{
    int all[50];
    int sum = 0;

    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < 50; k++)
            all[k] = (int)((k * 7919 + i * 13) % 101);
        qsort(all, 50, sizeof(all[0]), compare);
        sum += all[i % 50];
    }
    return sum;
}

int main(int argc, char **argv)
{
    static const unsigned char code[64] = {PUSH, ADD, MUL, JUMP, CALL, SUB, POP, STOP, ADD, PUSH, ADD, CALL, POP, STOP};
    struct point p = {1.5, 2.5, 3.5, 4};

    rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 4000;
    printf("%u\n", nested(rounds));
    printf("%u\n", inner(rounds));
    printf("%.3f\n", many(1, 2, 3, 4, p, 5, 6, 7, 8, 9, rounds));
    printf("%ld\n", interpret(code, rounds));
    calls(rounds);
    printf("%u\n", leaps(rounds));
    printf("%d\n", sorted(rounds / 20));
    printf("%u\n", sink);
    return 0;
}
