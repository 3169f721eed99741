// SPDX-License-Identifier: MIT
// Who opens the gate spares the broadcast when nobody seems to wait; one who has looked at the gate but not yet enrolled waits for ever.
#include "../corpus.h"

enum { WORKERS = 2 };

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    volatile int open;
    volatile int waiting;
};
static struct gate start = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

struct part {
    unsigned from, to;
    unsigned long sum;
};

static void gate_wait(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->open) {                            //@test
        window(300);
        g->waiting++;                             //@enroll
        pthread_cond_wait(&g->opened, &g->lock);  //@wait
        g->waiting--;
    }
    pthread_mutex_unlock(&g->lock);
}

static void gate_open(struct gate *g)
{
#ifdef FIXED
    pthread_mutex_lock(&g->lock);
    g->open = 1;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
#else
    g->open = 1;                                  //@open
    if (g->waiting > 0) {                         //@spare
        pthread_mutex_lock(&g->lock);
        pthread_cond_broadcast(&g->opened);
        pthread_mutex_unlock(&g->lock);
    }
#endif
}

static void *worker(void *arg)
{
    struct part *p = arg;

    window(2000);
    gate_wait(&start);
    for (unsigned i = p->from; i < p->to; i++)
        p->sum += (unsigned long)i * i;
    return NULL;
}

int main(void)
{
    struct part parts[WORKERS] = {{0, 500, 0}, {500, 1000, 0}};
    unsigned long sum = 0;
    pthread_t t[WORKERS];

    for (int i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, worker, &parts[i]);
    window(2000);
    gate_open(&start);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(t[i], NULL);
        sum += parts[i].sum;
    }
    printf("sum %lu\n", sum);
    return 0;
}
