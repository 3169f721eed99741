/* SPDX-License-Identifier: MIT */
/* An interpreter whose steps go from one to the next by calls through pointers with nothing behind them: optimised they
 * are jumps, and if they were not the stack would be too small. */
#include <stdio.h>
#include <stdlib.h>

typedef long step(const unsigned char *code, long sum, long rounds);

static step add, fold, again, stop;
static step *const steps[] = {add, fold, again, stop};
static const unsigned char program[] = {0, 1, 0, 2, 3};

static long add(const unsigned char *code, long sum, long rounds)
{
    sum += sum % 3 == 1 ? labs(sum) % 5 : 7;
    return steps[*code](code + 1, sum, rounds);
}

static long fold(const unsigned char *code, long sum, long rounds)
{
    return steps[*code](code + 1, sum ^ sum >> 3, rounds);
}

static long again(const unsigned char *code, long sum, long rounds)
{
    if (rounds > 0)
        code = program;
    return steps[*code](code + 1, sum, rounds - 1);
}

static long stop(const unsigned char *code, long sum, long rounds)
{
    return code ? sum + rounds : 0;
}

int main(int argc, char **argv)
{
    printf("%ld\n", steps[program[0]](program + 1, 1, argc > 1 ? atol(argv[1]) : 100));
    return 0;
}
