// SPDX-License-Identifier: MIT
// Double-checked locking: the pointer is published before what it points to is complete.
#include "../corpus.h"

struct service {
    const char *name;
};
static struct service *volatile instance;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct service *get(void)
{
    if (!instance) {                                       //@first
        pthread_mutex_lock(&lock);
        if (!instance) {                                   //@second
#ifdef FIXED
            struct service *s = calloc(1, sizeof(*s));
            window(200);
            s->name = "service";
            __atomic_store_n(&instance, s, __ATOMIC_RELEASE);
#else
            instance = calloc(1, sizeof(*instance));       //@publish
            window(200);
            instance->name = "service";                    //@complete
#endif
        }
        pthread_mutex_unlock(&lock);
    }
    return instance;                                       //@give
}

static void *worker(void *arg)
{
    (void)arg;
    window(300);
    return (void *)(long)get()->name[0];                   //@use
}

int main(void)
{
    pthread_t a, b;

    pthread_create(&a, NULL, worker, NULL);
    pthread_create(&b, NULL, worker, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
