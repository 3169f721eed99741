/* SPDX-License-Identifier: MIT */
/* A producer fills a queue of two places, and the consumer takes 2 ms for each item. Prints how long the producer waited
 * for a place, in nanoseconds. Compiles as C and as C++. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void nap(long ns)
{
    struct timespec t = {0, ns};

    nanosleep(&t, NULL);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t place_free = PTHREAD_COND_INITIALIZER, item_there = PTHREAD_COND_INITIALIZER;
static int items, taken;

__attribute__((noinline)) static void consume(void)
{
    nap(2000000);
}

static void *consumer(void *unused)
{
    while (taken < 40) {
        pthread_mutex_lock(&lock);
        while (items == 0)
            pthread_cond_wait(&item_there, &lock);
        items--;
        taken++;
        pthread_cond_signal(&place_free);
        pthread_mutex_unlock(&lock);
        consume();
    }
    return unused;
}

int main(void)
{
    long long waited = 0;
    pthread_t thread;

    pthread_create(&thread, NULL, consumer, NULL);
    for (int i = 0; i < 40; i++) {
        pthread_mutex_lock(&lock);
        while (items == 2) {
            long long before = now();

            pthread_cond_wait(&place_free, &lock);
            waited += now() - before;
        }
        items++;
        pthread_cond_signal(&item_there);
        pthread_mutex_unlock(&lock);
    }
    pthread_join(thread, NULL);
    printf("%lld\n", waited);
    return 0;
}
