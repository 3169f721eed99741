/* SPDX-License-Identifier: MIT */
/* As small as code with inlined calls can be: a seed for the fuzzer. */
static inline int twice(int x)
{
    return x + x;
}

static inline int four_times(int x)
{
    return twice(twice(x));
}

extern int outside(int x);

int entry(int x)
{
    return four_times(outside(x)) + twice(x);
}
