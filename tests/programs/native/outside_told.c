/* SPDX-License-Identifier: MIT */
/* A library of outside.c, compiled with unwind tables. */
void use_told(char *text, long n);
void use_deep(char *text, long n);

__attribute__((noinline)) void use_told(char *text, long n)
{
    *(volatile long *)text = n;
}

/* The caller is further up the stack than a hit is sampled. */
__attribute__((noinline)) void use_deep(char *text, long n)
{
    volatile char far[8192];

    far[0] = 0;
    *(volatile long *)text = n + far[0];
}
