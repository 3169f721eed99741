/* SPDX-License-Identifier: MIT */
/* Two threads, each on a CPU of its own for all its life, that pass a token to and fro. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic int turn;
static long sums[2];

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static __attribute__((noinline)) long work(long x)
{
    for (int i = 0; i < 50; i++)
        x = x & 1 ? 3 * x + 1 : x / 2 + i;
    return x;
}

static void *player(void *argument)
{
    int me = (int)(long)argument;

    pin(me);
    for (int round = 0; round < 20; round++) {
        while (turn != me)
            sched_yield();
        sums[me] = work(sums[me] + round);
        turn = !me;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];

    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, player, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("pinned %ld %ld\n", sums[0], sums[1]);
    return 0;
}
