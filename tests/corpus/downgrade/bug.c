// SPDX-License-Identifier: MIT
// A write lock is given up and taken again as a read lock; what was filled in between the two is dropped before it is used.
#include "../corpus.h"

struct route {
    char target[24];
    int metric;
};
struct cache {
    pthread_rwlock_t lock;
    struct route *route;
    unsigned fills, flushes;
};
static struct cache cache = {PTHREAD_RWLOCK_INITIALIZER, NULL, 0, 0};

static struct route *route_load(int metric)
{
    struct route *r = calloc(1, sizeof(*r));

    memcpy(r->target, "10.0.3.1", sizeof("10.0.3.1"));
    r->metric = metric;
    return r;
}

static int forward(int length)
{
    int cost;

    pthread_rwlock_rdlock(&cache.lock);
#ifdef FIXED
    while (!cache.route) {
#else
    if (!cache.route) {                      //@miss
#endif
        pthread_rwlock_unlock(&cache.lock);
        pthread_rwlock_wrlock(&cache.lock);
        if (!cache.route) {
            cache.route = route_load(3);     //@fill
            cache.fills++;
        }
        pthread_rwlock_unlock(&cache.lock);
        window(600);
        pthread_rwlock_rdlock(&cache.lock);
    }
    cost = cache.route->metric * length;     //@use
    pthread_rwlock_unlock(&cache.lock);
    return cost;
}

static void flush(void)
{
    struct route *old;

    pthread_rwlock_wrlock(&cache.lock);
    old = cache.route;
    cache.route = NULL;                      //@drop
    cache.flushes++;
    pthread_rwlock_unlock(&cache.lock);
    free(old);
}

static void *forwarder(void *arg)
{
    const int *lengths = arg;
    long cost = 0;

    for (int i = 0; lengths[i]; i++) {
        window(3000);
        cost += forward(lengths[i]);
    }
    return (void *)cost;
}

int main(void)
{
    static int lengths[] = {64, 1500, 400, 1500, 0};
    pthread_t t;
    void *cost;

    pthread_create(&t, NULL, forwarder, lengths);
    for (int i = 0; i < 3; i++) {
        window(6000);
        flush();
    }
    pthread_join(t, &cost);
    printf("cost %ld, %u fills, %u flushes\n", (long)cost, cache.fills, cache.flushes);
    return 0;
}
