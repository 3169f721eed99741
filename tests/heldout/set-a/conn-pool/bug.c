/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LIMIT 2
#define CLIENTS 3
#define QUERIES 4

struct conn {
    int number;
    int healthy;
    struct conn *next;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    struct conn *idle;
    int open;
    int made;
};

struct client {
    pthread_t thread;
    unsigned seed;
    int answered, failed;
};

static struct pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .returned = PTHREAD_COND_INITIALIZER};

static struct conn *conn_open(struct pool *p)
{
    struct conn *c = calloc(1, sizeof *c);

    c->number = ++p->made;
    c->healthy = 1;
    return c;
}

static struct conn *acquire(struct pool *p)
{
    struct conn *c;

    pthread_mutex_lock(&p->lock);
    while (!p->idle && p->open >= LIMIT) //@full
        pthread_cond_wait(&p->returned, &p->lock); //@wait
    if (p->idle) {
        c = p->idle;
        p->idle = c->next;
    } else {
        c = conn_open(p);
        p->open++; //@opened
    }
    pthread_mutex_unlock(&p->lock);
    return c;
}

static void discard(struct pool *p, struct conn *c)
{
#ifdef FIXED
    pthread_mutex_lock(&p->lock);
    p->open--;
    pthread_cond_signal(&p->returned);
    pthread_mutex_unlock(&p->lock);
#else
    (void)p;
#endif
    free(c); //@free
}

static void give_back(struct pool *p, struct conn *c)
{
    if (!c->healthy) { //@sick
        discard(p, c); //@discard
        return;
    }
    pthread_mutex_lock(&p->lock);
    c->next = p->idle;
    p->idle = c;
    pthread_cond_signal(&p->returned);
    pthread_mutex_unlock(&p->lock);
}

static int query(struct conn *c, unsigned *seed)
{
    usleep((unsigned)rand_r(seed) % 200);
    if (rand_r(seed) % 15 == 0) { //@broken
        c->healthy = 0; //@unhealthy
        return -1;
    }
    return 0;
}

static void *client_main(void *arg)
{
    struct client *me = arg;

    for (int i = 0; i < QUERIES; i++) {
        struct conn *c = acquire(&pool);

        if (query(c, &me->seed) == 0)
            me->answered++;
        else
            me->failed++;
        give_back(&pool, c);
    }
    return NULL;
}

int main(void)
{
    struct client clients[CLIENTS] = {0};
    struct timespec now;
    int answered = 0, failed = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].seed = (unsigned)(now.tv_nsec / 1000) * 31u + (unsigned)i;
        pthread_create(&clients[i].thread, NULL, client_main, &clients[i]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL); //@join
        answered += clients[i].answered;
        failed += clients[i].failed;
    }
    printf("%d answered, %d failed\n", answered, failed);
    while (pool.idle) {
        struct conn *c = pool.idle;

        pool.idle = c->next;
        free(c);
    }
    return 0;
}
