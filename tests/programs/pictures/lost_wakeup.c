/* SPDX-License-Identifier: MIT */
/* A consumer looks at `ready` and then waits, without the lock in between. A wake-up that comes between the two is lost. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static volatile int ready, item;

static void *consumer(void *unused)
{
    (void)unused;
    if (!ready) {
        pthread_mutex_lock(&mutex);
        pthread_cond_wait(&filled, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    printf("%d\n", item);
    return NULL;
}

static void *producer(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    item = 7;
    ready = 1;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void)
{
    pthread_t one, two;

    pthread_create(&one, NULL, consumer, NULL);
    pthread_create(&two, NULL, producer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
