/* SPDX-License-Identifier: MIT */
/* patient FILE [SIGNALS]: adds to a counter in a thread every ms until FILE exists and that many TERM or USR1 have come, then
 * says how many came. It waits for events and not for a time, so a busy machine changes nothing. It gives up after two minutes.
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
    int wanted = argc > 2 ? atoi(argv[2]) : 0;
    struct timespec end, now;
    pthread_t thread;

    if (argc < 2)
        return 2;
    signal(SIGTERM, count);
    signal(SIGUSR1, count);
    pthread_create(&thread, NULL, tick, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 120;
    puts("ready");
    fflush(stdout);
    do {
        usleep(2000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec && (signals < wanted || access(argv[1], F_OK) != 0));
    over = 1;
    pthread_join(thread, NULL);
    printf("signals %d\n", (int)signals);
    return 5;
}
