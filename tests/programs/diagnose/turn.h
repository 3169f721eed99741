/* SPDX-License-Identifier: MIT */
/* Which run this is, so that a test knows which runs fail. */
#ifndef TURN_H
#define TURN_H

#include <stdlib.h>

static inline int turn(void)
{
    const char *number = getenv("ETCH_RUN");

    return number ? atoi(number) : 0;
}

#endif
