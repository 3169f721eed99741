/* SPDX-License-Identifier: MIT */
/* Three threads meet at a gate in every round: sometimes one of them is left behind and waits for ever. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS 3
#define ROUNDS 2

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    atomic_int arrived;
    atomic_int round;
};

static struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
static atomic_int totals[ROUNDS];

static void open_gate(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    atomic_store(&g->arrived, 0);
    atomic_fetch_add(&g->round, 1);
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

static void pass(struct gate *g)
{
    int round = atomic_load(&g->round);

    if (atomic_fetch_add(&g->arrived, 1) + 1 == THREADS) {
        open_gate(g);
        return;
    }
    pthread_mutex_lock(&g->lock);
    while (atomic_load(&g->round) == round)
        pthread_cond_wait(&g->opened, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void *worker(void *arg)
{
    int number = (int)(long)arg;

    for (int round = 0; round < ROUNDS; round++) {
        atomic_fetch_add(&totals[round], number);
        pass(&gate);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", atomic_load(&totals[0]), atomic_load(&totals[1]));
    return 0;
}
