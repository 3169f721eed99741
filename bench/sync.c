/* SPDX-License-Identifier: MIT */
/* sync ROUNDS: nanoseconds of a mutex lock and unlock without contention, of a semaphore's post and wait, of a spin
 * lock; once with the synchronisation library and once without, the difference is what an event costs. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others on this machine do not count */
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000000;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_spinlock_t spin;
    sem_t sem;
    double start, a, b, c;

    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&sem, 0, 0);
    start = now();
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    a = (now() - start) / (double)rounds;
    start = now();
    for (long i = 0; i < rounds; i++) {
        sem_post(&sem);
        sem_wait(&sem);
    }
    b = (now() - start) / (double)rounds;
    start = now();
    for (long i = 0; i < rounds; i++) {
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
    }
    c = (now() - start) / (double)rounds;
    printf("%.2f %.2f %.2f\n", a, b, c); /* two events each */
    return 0;
}
