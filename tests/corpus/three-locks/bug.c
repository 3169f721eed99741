// SPDX-License-Identifier: MIT
// Three threads, three locks, each thread takes its own and then its neighbour's.
#include "../corpus.h"

static pthread_mutex_t fork_of[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int meals;

static void *first(void *arg)
{
    (void)arg;
    window(100);
    pthread_mutex_lock(&fork_of[0]);       //@own_1
    window(300);
    pthread_mutex_lock(&fork_of[1]);       //@next_1
    meals++;
    pthread_mutex_unlock(&fork_of[1]);
    pthread_mutex_unlock(&fork_of[0]);
    return NULL;
}

static void *second(void *arg)
{
    (void)arg;
    window(100);
    pthread_mutex_lock(&fork_of[1]);       //@own_2
    window(300);
    pthread_mutex_lock(&fork_of[2]);       //@next_2
    meals++;
    pthread_mutex_unlock(&fork_of[2]);
    pthread_mutex_unlock(&fork_of[1]);
    return NULL;
}

static void *third(void *arg)
{
    (void)arg;
    window(100);
#ifdef FIXED
    pthread_mutex_lock(&fork_of[0]);
    pthread_mutex_lock(&fork_of[2]);
#else
    pthread_mutex_lock(&fork_of[2]);       //@own_3
    window(300);
    pthread_mutex_lock(&fork_of[0]);       //@next_3
#endif
    meals++;
    pthread_mutex_unlock(&fork_of[0]);
    pthread_mutex_unlock(&fork_of[2]);
    return NULL;
}

int main(void)
{
    pthread_t a, b, c;

    pthread_create(&a, NULL, first, NULL);
    pthread_create(&b, NULL, second, NULL);
    pthread_create(&c, NULL, third, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_join(c, NULL);
    return 0;
}
