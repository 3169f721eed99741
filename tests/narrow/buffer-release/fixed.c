/* SPDX-License-Identifier: MIT */
/* Buffers that several threads share by a count: sometimes one is given back to the pool twice, and an assertion fails. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define BUFFERS 3

struct buffer {
    atomic_int holders;
    atomic_int in_pool;
    char data[32];
};

static struct buffer pool[BUFFERS];
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

static struct buffer *acquire(void)
{
    struct buffer *found = NULL;

    pthread_mutex_lock(&pool_lock);
    for (int i = 0; i < BUFFERS && !found; i++)
        if (atomic_load(&pool[i].in_pool)) {
            found = &pool[i];
            atomic_store(&found->in_pool, 0);
            atomic_store(&found->holders, 1);
        }
    pthread_mutex_unlock(&pool_lock);
    return found;
}

static void give_back(struct buffer *b)
{
    pthread_mutex_lock(&pool_lock);
    assert(!atomic_load(&b->in_pool));
    memset(b->data, 0, sizeof b->data);
    atomic_store(&b->in_pool, 1);
    pthread_mutex_unlock(&pool_lock);
}

static void release(struct buffer *b)
{
    if (atomic_fetch_sub(&b->holders, 1) == 1)
        give_back(b);
}

static void *sender(void *arg)
{
    struct buffer *b = arg;
    unsigned sum = 0;

    for (const char *p = b->data; *p; p++)
        sum = sum * 31 + (unsigned char)*p;
    release(b);
    return (void *)(unsigned long)sum;
}

int main(void)
{
    pthread_t one, two;

    for (int i = 0; i < BUFFERS; i++)
        atomic_store(&pool[i].in_pool, 1);
    struct buffer *b = acquire();
    strcpy(b->data, "hello");
    atomic_fetch_add(&b->holders, 1);
    pthread_create(&one, NULL, sender, b);
    pthread_create(&two, NULL, sender, b);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    puts("sent");
    return 0;
}
