/* SPDX-License-Identifier: MIT */
/* syncs: every synchronisation function a known number of times; prints nothing but "fine". */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t sem;
static pthread_key_t key;
static int ready;

/* A destructor that locks: events up to a thread's very end. */
static void at_end(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

/* A handler that posts, whatever it interrupts. */
static void on_signal(int number)
{
    (void)number;
    sem_post(&sem);
}

static void *partner(void *how)
{
    pthread_setspecific(key, &key);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    sem_wait(&sem);
    if (how)
        pthread_exit(how);
    return NULL;
}

static void once(void *how)
{
    pthread_t thread;
    void *result;

    ready = 0;
    pthread_create(&thread, NULL, partner, how);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    raise(SIGUSR1);
    pthread_join(thread, &result);
    if (result != how)
        abort();
}

int main(void)
{
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&sem, 0, 0);
    pthread_key_create(&key, at_end);
    signal(SIGUSR1, on_signal);
    once(NULL);
    once(&mutex);
    pthread_rwlock_rdlock(&rwlock);
    if (pthread_rwlock_trywrlock(&rwlock) != EBUSY)
        abort();
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    if (sem_trywait(&sem) != -1 || errno != EAGAIN)
        abort();
    if (fork() == 0) { /* the child's events are not the program's */
        for (int i = 0; i < 100; i++) {
            pthread_spin_lock(&spin);
            pthread_spin_unlock(&spin);
        }
        _exit(0);
    }
    wait(&(int){0});
    pthread_create(&thread, NULL, (void *(*)(void *))pause, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    puts("fine");
    return 0;
}
