/* SPDX-License-Identifier: MIT */
/* Two consumers and one producer on a ring: sometimes an item is taken from an empty ring, and an assertion fails. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define SIZE 8
#define ITEMS 2

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    int items[SIZE];
    int head, count, closed;
};

static struct ring ring = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static void add(struct ring *r, int item)
{
    pthread_mutex_lock(&r->lock);
    r->items[(r->head + r->count) % SIZE] = item;
    r->count++;
    pthread_cond_signal(&r->filled);
    pthread_mutex_unlock(&r->lock);
}

static void end(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->closed = 1;
    pthread_cond_broadcast(&r->filled);
    pthread_mutex_unlock(&r->lock);
}

static int take(struct ring *r)
{
    int item = 0;

    pthread_mutex_lock(&r->lock);
    while (r->count == 0 && !r->closed)
        pthread_cond_wait(&r->filled, &r->lock);
    if (r->count > 0 || !r->closed) {
        assert(r->count > 0);
        item = r->items[r->head];
        r->head = (r->head + 1) % SIZE;
        r->count--;
    }
    pthread_mutex_unlock(&r->lock);
    return item;
}

static void *consumer(void *arg)
{
    long sum = 0;
    int item;

    (void)arg;
    while ((item = take(&ring)) != 0) {
        sum += item;
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t one, two;
    void *a, *b;

    pthread_create(&one, NULL, consumer, NULL);
    pthread_create(&two, NULL, consumer, NULL);
    for (int i = 1; i <= ITEMS; i++) {
        add(&ring, i);
    }
    end(&ring);
    pthread_join(one, &a);
    pthread_join(two, &b);
    printf("sum %ld\n", (long)a + (long)b);
    return (long)a + (long)b == ITEMS * (ITEMS + 1) / 2 ? 0 : 1;
}
