// SPDX-License-Identifier: MIT
// Memcached 127: incr reads the item, computes, and replaces it, each under the lock; together they lose an update.
#include "../corpus.h"

struct item {
    int value;
};
static struct item *slot;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static int item_get(void)
{
    int v;

    pthread_mutex_lock(&cache_lock);
    v = slot->value;                //@get
    pthread_mutex_unlock(&cache_lock);
    return v;                       //@got
}

static void item_replace(int v)
{
    pthread_mutex_lock(&cache_lock);
    slot->value = v;                //@replace
    pthread_mutex_unlock(&cache_lock);
}

static void *incr(void *arg)
{
    (void)arg;
    window(300);
#ifdef FIXED
    pthread_mutex_lock(&cache_lock);
    slot->value++;
    pthread_mutex_unlock(&cache_lock);
    (void)item_get, (void)item_replace;
#else
    int v = item_get();             //@read
    window(150);
    item_replace(v + 1);            //@write
#endif
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    slot = calloc(1, sizeof(*slot));
    pthread_create(&a, NULL, incr, NULL);
    pthread_create(&b, NULL, incr, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    CHECK(slot->value == 2);        //@check
    return 0;
}
