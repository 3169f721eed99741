/* SPDX-License-Identifier: MIT */
/* Two threads hand a token over through one variable. Every value is written once, so the true order of all accesses is
 * known: `token N` hands it over N times. To be recorded with --watch token. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

volatile long token; /* the watched one: written and read once for each hand-over */

static _Atomic long turn; /* what they wait on */
static long hand_overs = 100000;

static void *play(void *argument)
{
    long side = (long)argument;

    for (long value = side; value < hand_overs; value += 2) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != value)
            ;
        if (token != value)
            abort();
        token = value + 1;
        atomic_store_explicit(&turn, value + 1, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other;

    if (argc > 1)
        hand_overs = atol(argv[1]);
    if (pthread_create(&other, NULL, play, (void *)1L) != 0)
        return 1;
    play((void *)0L);
    pthread_join(other, NULL);
    printf("%ld\n", token);
    return token == hand_overs ? 0 : 1;
}
