/* SPDX-License-Identifier: MIT */
/* Work in parallel with results in order: one thread fills items and takes the results in the same order, others work
 * on them in between. How many there are changes nothing but the time it takes. */
#ifndef ETCH_DECODER_FLOW_POOL_H
#define ETCH_DECODER_FLOW_POOL_H

#include <stddef.h>

enum { ETCH_POOL_NO_MEMORY = -1000 };

struct etch_pool_job {
    void *context;
    size_t item_size;                   /* items begin as zeros and are used again and again */
    void *(*new_worker)(void *context); /* what a worker keeps to itself; NULL is a failure */
    void (*free_worker)(void *worker);
    int (*fill)(void *context, void *item);                /* 1, 0 when there is no more, negative on failure */
    void (*work)(void *context, void *worker, void *item); /* on any thread */
    int (*deliver)(void *context, void *item);             /* in order; other than 0 ends it all */
    void (*release)(void *item);
};

/* Runs the job on `workers` threads (0: as many as CPUs; 1: on this one). Returns 0, what fill or deliver failed with,
 * or ETCH_POOL_NO_MEMORY. */
int etch_pool_run(const struct etch_pool_job *job, unsigned workers);

#endif
