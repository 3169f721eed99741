// SPDX-License-Identifier: MIT
// A job is queued before its handler is set; a worker that is quick enough calls a handler that is not there yet.
#include "../corpus.h"

struct job {
    int id;
    unsigned size;
    int (*run)(const struct job *);
    struct job *next;
};
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct job *head;
    int closed;
};
static struct queue jobs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0};
static unsigned stored, packed;

static int store(const struct job *j)
{
    stored += j->size;
    return 0;
}

static int pack(const struct job *j)
{
    packed += j->size / 3;
    return j->size < 3;
}

static void submit(struct queue *q, struct job *j)
{
    pthread_mutex_lock(&q->lock);
    j->next = q->head;
    q->head = j;                                 //@push
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

static struct job *pop(struct queue *q)
{
    struct job *j;

    pthread_mutex_lock(&q->lock);
    while (!q->head && !q->closed)
        pthread_cond_wait(&q->filled, &q->lock);
    j = q->head;                                 //@pop
    if (j)
        q->head = j->next;
    pthread_mutex_unlock(&q->lock);
    return j;                                    //@give
}

static void *worker(void *arg)
{
    struct queue *q = arg;
    int failed = 0;

    for (;;) {
        struct job *j = pop(q);                  //@take
        if (!j)
            break;
        window(1000);
        failed += j->run(j);                     //@call
        free(j);
    }
    return (void *)(long)failed;
}

int main(void)
{
    static const unsigned sizes[] = {120, 4096, 77};
    unsigned total = 0;
    pthread_t t;

    pthread_create(&t, NULL, worker, &jobs);
    for (int i = 0; i < 3; i++) {
        struct job *j = calloc(1, sizeof(*j));   //@alloc
        j->id = i;
        j->size = sizes[i];
        total += sizes[i];
#ifdef FIXED
        j->run = sizes[i] > 100 ? pack : store;
        submit(&jobs, j);
#else
        submit(&jobs, j);                        //@submit
        window(450);
        j->run = sizes[i] > 100 ? pack : store;  //@set
#endif
        window(300);
    }
    pthread_mutex_lock(&jobs.lock);
    jobs.closed = 1;
    pthread_cond_signal(&jobs.filled);
    pthread_mutex_unlock(&jobs.lock);
    pthread_join(t, NULL);
    printf("%u bytes, %u stored, %u packed\n", total, stored, packed);
    return 0;
}
