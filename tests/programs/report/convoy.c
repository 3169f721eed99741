/* SPDX-License-Identifier: MIT */
/* Four threads sleep under one lock. With -DOWN_DATA each has data of its own, so that the lock protects nothing. Prints
 * how long the threads waited for the lock, in nanoseconds. Compiles as C and as C++. */
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

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static long long waited[4];
static long data[4];

__attribute__((noinline)) static void update(int i)
{
    long long before = now();

    pthread_mutex_lock(&table_lock);
    waited[i] += now() - before;
#ifdef OWN_DATA
    data[i]++;
#else
    data[0]++;
#endif
    nap(1000000);
    pthread_mutex_unlock(&table_lock);
}

static void *work(void *number)
{
    for (int i = 0; i < 25; i++)
        update((int)(long)number);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];

    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%lld\n", waited[0] + waited[1] + waited[2] + waited[3]);
    return 0;
}
