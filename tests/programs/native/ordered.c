/* SPDX-License-Identifier: MIT */
/* Every kind of synchronisation, and the truth about its order: a ticket from one counter is drawn before and after each
 * call, so that the call lies between the two. `ordered FILE ROUNDS GENERATIONS` writes a line for each: thread, operation (as
 * etch.proto numbers it), the two tickets. To be recorded with --source none. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CREATE = 1,
    JOIN = 4,
    LOCK = 5,
    UNLOCK = 6,
    RDLOCK = 7,
    WRLOCK = 8,
    RWUNLOCK = 9,
    WAIT_BEGIN = 10,
    WAIT_END = 11,
    SIGNAL = 12,
    BROADCAST = 13,
    ENTER = 14,
    LEAVE = 15,
    POST = 16,
    SEM_WAIT = 17,
    SPIN_LOCK = 18,
    SPIN_UNLOCK = 19,
    MUTEX_INIT = 21,
    SEM_INIT = 23,
    BARRIER_INIT = 24,
};

#define THREADS 3
#define ENTRIES 400000

struct log {
    int tid;
    unsigned n;
    struct {
        int op;
        unsigned before, after;
    } v[ENTRIES];
};

static struct log logs[1 + 2 * THREADS];
static _Thread_local struct log *mine;
static atomic_uint tickets;
static int rounds;

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t there, back;
static int queued;

static void note(int op, unsigned before, unsigned after)
{
    if (mine->n == ENTRIES)
        abort();
    mine->v[mine->n].op = op;
    mine->v[mine->n].before = before;
    mine->v[mine->n++].after = after;
}

#define DO(op, call)                                                                                                   \
    do {                                                                                                               \
        unsigned before = atomic_fetch_add(&tickets, 1);                                                               \
        if (call)                                                                                                      \
            abort();                                                                                                   \
        note(op, before, atomic_fetch_add(&tickets, 1));                                                               \
    } while (0)

/* Two events: what begins with the call and what ends with it. */
#define DO_BOTH(first, last, call)                                                                                     \
    do {                                                                                                               \
        unsigned before = atomic_fetch_add(&tickets, 1), after;                                                        \
        int result = call;                                                                                             \
        if (result && result != PTHREAD_BARRIER_SERIAL_THREAD)                                                         \
            abort();                                                                                                   \
        after = atomic_fetch_add(&tickets, 1);                                                                         \
        note(first, before, after);                                                                                    \
        note(last, before, after);                                                                                     \
    } while (0)

static void locks(int side, int round)
{
    DO(LOCK, pthread_mutex_lock(&mutex));
    DO(UNLOCK, pthread_mutex_unlock(&mutex));
    if ((round + side) % 4 == 0)
        DO(WRLOCK, pthread_rwlock_wrlock(&rwlock));
    else
        DO(RDLOCK, pthread_rwlock_rdlock(&rwlock));
    DO(RWUNLOCK, pthread_rwlock_unlock(&rwlock));
    DO(SPIN_LOCK, pthread_spin_lock(&spin));
    DO(SPIN_UNLOCK, pthread_spin_unlock(&spin));
}

/* Side 0 makes, side 1 takes. */
static void conditions(int side, int round)
{
    if (side == 2)
        return;
    DO(LOCK, pthread_mutex_lock(&mutex));
    if (side == 0) {
        queued++;
        if (round % 5 == 0)
            DO(BROADCAST, pthread_cond_broadcast(&cond));
        else
            DO(SIGNAL, pthread_cond_signal(&cond));
    } else {
        while (queued == 0)
            DO_BOTH(WAIT_BEGIN, WAIT_END, pthread_cond_wait(&cond, &mutex));
        queued--;
    }
    DO(UNLOCK, pthread_mutex_unlock(&mutex));
}

/* There and back between sides 0 and 2. */
static void semaphores(int side)
{
    if (side == 0) {
        DO(POST, sem_post(&there));
        DO(SEM_WAIT, sem_wait(&back));
    } else if (side == 2) {
        DO(SEM_WAIT, sem_wait(&there));
        DO(POST, sem_post(&back));
    }
}

static void *work(void *argument)
{
    int number = (int)(long)argument, side = number % THREADS;

    mine = &logs[1 + number];
    mine->tid = gettid();
    for (int round = 0; round < rounds; round++) {
        locks(side, round);
        conditions(side, round);
        semaphores(side);
        if (round % 10 == 0)
            DO_BOTH(ENTER, LEAVE, pthread_barrier_wait(&barrier));
    }
    return NULL;
}

static void write_logs(const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file)
        abort();
    for (unsigned i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
        for (unsigned k = 0; k < logs[i].n; k++)
            fprintf(file, "%d %d %u %u\n", logs[i].tid, logs[i].v[k].op, logs[i].v[k].before, logs[i].v[k].after);
    fclose(file);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int generations;

    if (argc < 4)
        return 2;
    rounds = atoi(argv[2]);
    generations = atoi(argv[3]) > 1 ? 2 : 1;
    mine = &logs[0];
    mine->tid = gettid();
    pthread_spin_init(&spin, 0);
    DO(MUTEX_INIT, pthread_mutex_init(&mutex, NULL));
    DO(BARRIER_INIT, pthread_barrier_init(&barrier, NULL, THREADS));
    DO(SEM_INIT, sem_init(&there, 0, 0));
    DO(SEM_INIT, sem_init(&back, 0, 0));
    for (int generation = 0; generation < generations; generation++) { /* the second is likely to get the same handles */
        for (int i = 0; i < THREADS; i++)
            DO(CREATE, pthread_create(&threads[i], NULL, work, (void *)(long)(generation * THREADS + i)));
        for (int i = 0; i < THREADS; i++)
            DO(JOIN, pthread_join(threads[i], NULL));
    }
    write_logs(argv[1]);
    return 0;
}
