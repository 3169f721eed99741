// SPDX-License-Identifier: MIT
// A semaphore that should let one in starts at two.
#include "../corpus.h"
#include <semaphore.h>

static sem_t gate;
static int inside;

static void *worker(void *arg)
{
    (void)arg;
    window(600);
    sem_wait(&gate);               //@enter
    inside++;                      //@inc
    window(150);
    CHECK(inside == 1);            //@check
    inside--;                      //@dec
    sem_post(&gate);
    return NULL;
}

int main(void)
{
    pthread_t a, b;

#ifdef FIXED
    sem_init(&gate, 0, 1);
#else
    sem_init(&gate, 0, 2);         //@init
#endif
    pthread_create(&a, NULL, worker, NULL);
    pthread_create(&b, NULL, worker, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
