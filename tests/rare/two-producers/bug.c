/* SPDX-License-Identifier: MIT */
/* A ring for one producer has two: the second overwrites the slot of the first. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define SIZE 8
static int ring[SIZE];
static atomic_uint head, tail;

static void push(int value)
{
    unsigned at = atomic_load_explicit(&head, memory_order_relaxed);

    while (at - atomic_load_explicit(&tail, memory_order_acquire) == SIZE)
        ;
    ring[at % SIZE] = value;
    atomic_store_explicit(&head, at + 1, memory_order_release);
}

static void *produce(void *arg)
{
    for (int i = 0; i < 4; i++)
        push(*(int *)arg);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int values[2] = {1, 100}, sum = 0;

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, produce, &values[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    while (tail != head)
        sum += ring[tail++ % SIZE];
    assert(sum == 404);
    return 0;
}
