// SPDX-License-Identifier: MIT
// Apache 21285: a cache object is found; before it is used, another thread's cleanup removes and frees it.
#include "../corpus.h"

struct entry {
    char *data;
    int size;
};
static struct entry *table[4];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *cleanup(void *arg)
{
    (void)arg;
    window(300);
    pthread_mutex_lock(&lock);
    struct entry *e = table[1];           //@victim
    table[1] = NULL;                      //@remove
    e->data = NULL;                       //@clear
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int serve(void)
{
    int first = 0;

    pthread_mutex_lock(&lock);
    struct entry *e = table[1];           //@find
#ifdef FIXED
    if (e)
        first = e->data[0];
    pthread_mutex_unlock(&lock);
#else
    pthread_mutex_unlock(&lock);
    window(300);
    if (e)                                //@test
        first = e->data[0];               //@use
#endif
    return first;
}

int main(void)
{
    pthread_t t;

    table[1] = calloc(1, sizeof(struct entry));
    table[1]->data = strdup("x");         //@make
    pthread_create(&t, NULL, cleanup, NULL);
    serve();
    pthread_join(t, NULL);
    return 0;
}
