/* SPDX-License-Identifier: MIT */
/* A library with a counter. Its threads lose an addition, because they do not lock. */
#include "counter.h"

/* The program has a function and a variable of these names too. */
int __attribute__((visibility("hidden"))) step(void)
{
    return 1;
}
int __attribute__((visibility("hidden"))) total;

static int begun;

__attribute__((constructor)) static void begin(void)
{
    begun = 1;
}

int counter_begun(void)
{
    return begun;
}

/* The program has its own: that one counts, for the library too. */
const char *counter_name(void)
{
    return "library";
}

const char *counter_name_inside(void)
{
    return counter_name();
}

void *counter_run(void *unused)
{
    int now = total; //@read

    (void)unused;
    total = now + step(); //@write
    return 0;
}

int counter_total(void)
{
    return total;
}
