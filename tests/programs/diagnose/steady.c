/* SPDX-License-Identifier: MIT */
/* Fails in every run, by its status: with an argument, only from that run on. */
#include "turn.h"

static int limit = 7;

static int judge(int n)
{
    if (n > limit)
        return 4; //@judged
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && turn() < atoi(argv[1]))
        return judge(limit);
    return judge(limit + 1);
}
