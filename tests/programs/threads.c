/* SPDX-License-Identifier: MIT */
/* Eight threads, a mutex, a condition and an atomic counter. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER;
static int started;
long total;
_Atomic long steps;

static void *work(void *argument)
{
    long id = (long)argument, sum = 0;

    pthread_mutex_lock(&lock);
    started++;
    pthread_cond_broadcast(&go);
    while (started < 8)
        pthread_cond_wait(&go, &lock);
    pthread_mutex_unlock(&lock);
    for (long i = 0; i < 2000; i++) {
        sum += i % (id + 3);
        steps++;
    }
    pthread_mutex_lock(&lock);
    total += sum;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[8];

    for (long i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    printf("threads %ld %ld\n", total, (long)steps);
    return 0;
}
