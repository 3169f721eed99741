/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAMES 3
#define ROUNDS 3

struct counter {
    const char *name;
    long value;
};

struct registry {
    pthread_mutex_t lock;
    struct counter counters[NAMES];
    int stop;
};

struct totals {
    long sums[NAMES];
    int reports;
};

static struct registry registry = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .counters = {{"requests", 0}, {"errors", 0}, {"bytes", 0}},
};

static void idle(unsigned most)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    usleep((unsigned)(now.tv_nsec / 64) % most);
}

static struct counter *find(struct registry *r, const char *name)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(r->counters[i].name, name) == 0)
            return &r->counters[i];
    return NULL;
}

static void count(struct registry *r, const char *name, long amount)
{
    pthread_mutex_lock(&r->lock);
    find(r, name)->value += amount; //@count
    pthread_mutex_unlock(&r->lock);
}

static long read_counter(struct registry *r, int i)
{
    long value;

    pthread_mutex_lock(&r->lock);
    value = r->counters[i].value; //@read
#ifdef FIXED
    r->counters[i].value = 0;
#endif
    pthread_mutex_unlock(&r->lock);
    return value;
}

#ifndef FIXED
static void reset_counter(struct registry *r, int i)
{
    pthread_mutex_lock(&r->lock);
    r->counters[i].value = 0; //@zero
    pthread_mutex_unlock(&r->lock);
}
#endif

static void report(struct registry *r, struct totals *t)
{
    for (int i = 0; i < NAMES; i++) {
        long value = read_counter(r, i);

        t->sums[i] += value; //@sum
        idle(40);
#ifndef FIXED
        if (value > 0)
            reset_counter(r, i); //@reset
#endif
    }
    t->reports++;
}

static void *reporter(void *arg)
{
    struct totals *t = arg;
    int stop;

    do {
        idle(4000);
        pthread_mutex_lock(&registry.lock);
        stop = registry.stop;
        pthread_mutex_unlock(&registry.lock);
        report(&registry, t);
    } while (!stop);
    return NULL;
}

static void *server(void *arg)
{
    long size = (long)arg;

    for (int i = 0; i < ROUNDS; i++) {
        idle(3500);
        count(&registry, "requests", 1);
        if (i % 2 == 0)
            count(&registry, "bytes", size);
    }
    return NULL;
}

int main(void)
{
    pthread_t servers[2], reporting;
    struct totals totals = {0};

    pthread_create(&reporting, NULL, reporter, &totals);
    for (long i = 0; i < 2; i++)
        pthread_create(&servers[i], NULL, server, (void *)(100 * (i + 1)));
    for (int i = 0; i < 2; i++)
        pthread_join(servers[i], NULL);
    pthread_mutex_lock(&registry.lock);
    registry.stop = 1;
    pthread_mutex_unlock(&registry.lock);
    pthread_join(reporting, NULL);
    printf("requests %ld errors %ld bytes %ld\n", totals.sums[0], totals.sums[1], totals.sums[2]); //@print
    return 0;
}
