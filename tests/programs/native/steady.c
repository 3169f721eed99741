/* SPDX-License-Identifier: MIT */
/* steady FILE: makes threads, sends itself signals that queue, locks, for about 100 ms; says in FILE that it began and,
 * if nothing was lost, that it is done. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

volatile long hot;
static volatile sig_atomic_t got;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void count(int number)
{
    (void)number;
    got++;
}

static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        hot++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int argc, char **argv)
{
    FILE *file = fopen(argc > 1 ? argv[1] : "/dev/stdout", "w");
    int sent = 0;

    signal(SIGRTMIN, count);
    fputs("began\n", file);
    fflush(file);
    for (int round = 0; round < 40; round++) {
        pthread_t thread;

        pthread_create(&thread, NULL, work, NULL);
        for (int i = 0; i < 10; i++, sent++)
            kill(getpid(), SIGRTMIN);
        pthread_join(thread, NULL);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    for (int i = 0; i < 2000 && got < sent; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    fprintf(file, "done %d %ld\n", (int)got, hot);
    fclose(file);
    return 0;
}
