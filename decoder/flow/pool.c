/* SPDX-License-Identifier: MIT */
/* See pool.h. A ring of items: filled at one end, delivered at the other, worked on in between. */
#include "decoder/flow/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct pool {
    const struct etch_pool_job *job;
    pthread_mutex_t lock; /* of what follows but the items */
    pthread_cond_t ready; /* an item to work on, or the end */
    pthread_cond_t done;  /* an item that was worked on */
    uint8_t *items;
    bool *finished;
    size_t capacity;
    uint64_t filled, taken, delivered; /* items so far; taken: by workers */
    bool over;
};

struct worker {
    pthread_t thread;
    struct pool *pool;
    void *own;
};

static void *item_at(const struct pool *pool, uint64_t n)
{
    return pool->items + (size_t)(n % pool->capacity) * pool->job->item_size;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    struct pool *pool = w->pool;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        uint64_t n;

        while (pool->taken == pool->filled && !pool->over)
            pthread_cond_wait(&pool->ready, &pool->lock);
        if (pool->over)
            break;
        n = pool->taken++;
        pthread_mutex_unlock(&pool->lock);
        pool->job->work(pool->job->context, w->own, item_at(pool, n));
        pthread_mutex_lock(&pool->lock);
        pool->finished[n % pool->capacity] = true;
        pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Waits for the oldest item, if there is one, and delivers it. Returns 0, or what deliver returned. */
static int deliver_oldest(struct pool *pool)
{
    size_t at = (size_t)(pool->delivered % pool->capacity);
    int status;

    pthread_mutex_lock(&pool->lock);
    while (!pool->finished[at])
        pthread_cond_wait(&pool->done, &pool->lock);
    pool->finished[at] = false;
    pthread_mutex_unlock(&pool->lock);
    status = pool->job->deliver(pool->job->context, item_at(pool, pool->delivered));
    pool->delivered++;
    return status;
}

static int feed(struct pool *pool)
{
    int found = 1, status = 0;

    while (status == 0) {
        if (found > 0 && pool->filled - pool->delivered < pool->capacity) {
            found = pool->job->fill(pool->job->context, item_at(pool, pool->filled));
            if (found > 0) {
                pthread_mutex_lock(&pool->lock);
                pool->filled++;
                pthread_cond_signal(&pool->ready);
                pthread_mutex_unlock(&pool->lock);
            }
        } else if (pool->delivered < pool->filled) {
            status = deliver_oldest(pool);
        } else {
            return found;
        }
    }
    return status;
}

static void stop(struct pool *pool, struct worker *workers, unsigned n)
{
    pthread_mutex_lock(&pool->lock);
    pool->over = true;
    pthread_cond_broadcast(&pool->ready);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
}

static int run_workers(struct pool *pool, unsigned n)
{
    struct worker *workers = calloc(n, sizeof(*workers));
    unsigned started = 0;
    int status = ETCH_POOL_NO_MEMORY;

    for (; workers && started < n; started++) {
        struct worker *w = &workers[started];

        w->pool = pool;
        w->own = pool->job->new_worker(pool->job->context);
        if (!w->own)
            break;
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            pool->job->free_worker(w->own);
            break;
        }
    }
    if (started > 0) /* fewer than asked for do as well */
        status = feed(pool);
    stop(pool, workers, started);
    for (unsigned i = 0; i < started; i++)
        pool->job->free_worker(workers[i].own);
    free(workers);
    return status;
}

static int run_alone(const struct etch_pool_job *job)
{
    void *item = calloc(1, job->item_size), *own = job->new_worker(job->context);
    int status = item && own ? 0 : ETCH_POOL_NO_MEMORY;

    while (status == 0) {
        int found = job->fill(job->context, item);

        if (found <= 0) {
            status = found;
            break;
        }
        job->work(job->context, own, item);
        status = job->deliver(job->context, item);
    }
    if (item)
        job->release(item);
    if (own)
        job->free_worker(own);
    free(item);
    return status;
}

int etch_pool_run(const struct etch_pool_job *job, unsigned workers)
{
    struct pool pool = {.job = job};
    int status = ETCH_POOL_NO_MEMORY;

    if (workers == 0) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        workers = cpus > 0 ? (unsigned)cpus : 1;
    }
    if (workers == 1)
        return run_alone(job);
    pool.capacity = (size_t)workers + 2;
    pool.items = calloc(pool.capacity, job->item_size);
    pool.finished = calloc(pool.capacity, sizeof(*pool.finished));
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.ready, NULL);
    pthread_cond_init(&pool.done, NULL);
    if (pool.items && pool.finished)
        status = run_workers(&pool, workers);
    for (size_t i = 0; pool.items && i < pool.capacity; i++)
        job->release(item_at(&pool, i));
    pthread_mutex_destroy(&pool.lock);
    pthread_cond_destroy(&pool.ready);
    pthread_cond_destroy(&pool.done);
    free(pool.items);
    free(pool.finished);
    return status;
}
