// SPDX-License-Identifier: MIT
// Apache 21287: dropping a reference, testing for zero and freeing are not one step; two threads free one cache object.
#include "../corpus.h"

struct object {
    int refcount;
    char *body;
};
static struct object *cached;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void drop(struct object *obj)
{
    int last;
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    obj->refcount--;                  //@dec
    window(200);
    last = obj->refcount == 0;        //@test
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    if (last)                         //@branch
        free(obj->body);              //@free
}

static void *worker(void *arg)
{
    window(300);
    drop(arg);                        //@drop
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    cached = calloc(1, sizeof(*cached));
    cached->body = malloc(4000);
    cached->refcount = 2;
    pthread_create(&a, NULL, worker, cached);
    pthread_create(&b, NULL, worker, cached);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
