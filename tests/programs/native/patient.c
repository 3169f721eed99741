/* SPDX-License-Identifier: MIT */
/* patient SECONDS: counts TERM and USR1 that it gets, adds to a counter in a thread every ms, and says both at the end.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

volatile long ticks;
static volatile sig_atomic_t signals;
static volatile int over;

static void count(int number)
{
    (void)number;
    signals++;
}

static void *tick(void *unused)
{
    while (!over) {
        ticks++;
        usleep(1000);
    }
    return unused;
}

int main(int argc, char **argv)
{
    struct timespec end, now;
    pthread_t thread;

    signal(SIGTERM, count);
    signal(SIGUSR1, count);
    pthread_create(&thread, NULL, tick, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += argc > 1 ? atoi(argv[1]) : 1;
    puts("ready");
    fflush(stdout);
    do {
        usleep(2000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    over = 1;
    pthread_join(thread, NULL);
    printf("signals %d\n", (int)signals);
    return 5;
}
