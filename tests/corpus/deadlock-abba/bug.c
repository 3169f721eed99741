// SPDX-License-Identifier: MIT
// Two locks taken in opposite orders.
#include "../corpus.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int from, to;

static void *forth(void *arg)
{
    (void)arg;
    window(200);
    pthread_mutex_lock(&a);       //@a1
    window(150);
    pthread_mutex_lock(&b);       //@b1
    to += from;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *back(void *arg)
{
    (void)arg;
    window(200);
#ifdef FIXED
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
#else
    pthread_mutex_lock(&b);       //@b2
    window(150);
    pthread_mutex_lock(&a);       //@a2
#endif
    from += to;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return NULL;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, forth, NULL);
    pthread_create(&t2, NULL, back, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
