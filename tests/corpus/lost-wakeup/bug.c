// SPDX-License-Identifier: MIT
// The waiter looks at the flag, then waits; a signal in between wakes nobody, and none comes again.
#include "../corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int done;

static void *waiter(void *arg)
{
    (void)arg;
    window(200);
#ifdef FIXED
    pthread_mutex_lock(&lock);
    while (!done)
        pthread_cond_wait(&ready, &lock);
    pthread_mutex_unlock(&lock);
#else
    if (!done) {                              //@test
        window(200);
        pthread_mutex_lock(&lock);
        pthread_cond_wait(&ready, &lock);     //@wait
        pthread_mutex_unlock(&lock);
    }
#endif
    return NULL;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, waiter, NULL);
    window(400);
    pthread_mutex_lock(&lock);
    done = 1;                                 //@done
    pthread_cond_signal(&ready);              //@signal
    pthread_mutex_unlock(&lock);
    pthread_join(t, NULL);
    return 0;
}
