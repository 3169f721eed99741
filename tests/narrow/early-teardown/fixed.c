/* SPDX-License-Identifier: MIT */
/* The main thread tears a channel down when the last message was counted: sometimes a worker crashes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 2

struct stats {
    atomic_long bytes;
};

struct channel {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    int open;
    struct stats *stats;
};

static struct channel channel = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

static void finish(struct channel *c, long bytes)
{
    atomic_fetch_add(&c->stats->bytes, bytes);
    pthread_mutex_lock(&c->lock);
    int left = --c->open;
    pthread_mutex_unlock(&c->lock);
    if (left == 0)
        pthread_cond_signal(&c->idle);
}

static void *worker(void *arg)
{
    const char *text = arg;
    long length = 0;

    while (text[length])
        length++;
    finish(&channel, length);
    return NULL;
}

static long drain(struct channel *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->open > 0)
        pthread_cond_wait(&c->idle, &c->lock);
    struct stats *stats = c->stats;
    c->stats = NULL;
    pthread_mutex_unlock(&c->lock);
    long bytes = atomic_load(&stats->bytes);
    free(stats);
    return bytes;
}

int main(void)
{
    static char *texts[WORKERS] = {"first message", "second"};
    pthread_t workers[WORKERS];

    channel.stats = calloc(1, sizeof *channel.stats);
    channel.open = WORKERS;
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, worker, texts[i]);
    long bytes = drain(&channel);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    printf("%s\n", bytes > 0 ? "drained" : "nothing");
    return 0;
}
