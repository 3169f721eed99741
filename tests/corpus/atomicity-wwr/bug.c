// SPDX-License-Identifier: MIT
// Write, remote write, read: a thread writes its number and reads back another's.
#include "../corpus.h"

static int current;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void *worker(void *arg)
{
    int me = (int)(long)arg;              //@me

    window(300);
    LOCK();
    current = me;                         //@write
    window(150);
    CHECK(current == me);                 //@check
    UNLOCK();
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    pthread_create(&a, NULL, worker, (void *)1); //@first
    pthread_create(&b, NULL, worker, (void *)2); //@second
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
