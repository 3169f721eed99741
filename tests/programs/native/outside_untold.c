/* SPDX-License-Identifier: MIT */
/* A library of outside.c, compiled without unwind tables: nobody can know who called. */
void use_untold(char *text, long n);

__attribute__((noinline)) void use_untold(char *text, long n)
{
    *(volatile long *)text = n;
}
