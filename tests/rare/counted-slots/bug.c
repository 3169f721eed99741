/* SPDX-License-Identifier: MIT */
/* Semaphores bound a buffer, but two consumers share its read index without a lock. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

#define N 6
static sem_t filled, empty;
static int buffer[3], in, out, taken[N + 1];

static void *produce(void *unused)
{
    (void)unused;
    for (int i = 1; i <= N; i++) {
        sem_wait(&empty);
        buffer[in] = i;
        in = (in + 1) % 3;
        sem_post(&filled);
    }
    return NULL;
}

static void *consume(void *unused)
{
    (void)unused;
    for (int i = 0; i < N / 2; i++) {
        sem_wait(&filled);
        int at = out;
        out = (at + 1) % 3;
        int value = buffer[at];
        sem_post(&empty);
        taken[value]++;
        assert(taken[value] == 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];

    sem_init(&filled, 0, 0);
    sem_init(&empty, 0, 3);
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    pthread_create(&threads[2], NULL, consume, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
