// SPDX-License-Identifier: MIT
// pbzip2 0.9.4: main destroys the queue's mutex and clears its pointer while a consumer may still be about to unlock it.
#include "../corpus.h"

struct queue {
    pthread_mutex_t *mut;
    int left;
};

static void *consumer(void *arg)
{
    struct queue *fifo = arg;

    for (;;) {
        pthread_mutex_lock(fifo->mut);        //@lock
        if (fifo->left == 0) {
            window(300);
            pthread_mutex_unlock(fifo->mut);  //@unlock
            return NULL;
        }
        fifo->left--;
        pthread_mutex_unlock(fifo->mut);
    }
}

int main(void)
{
    struct queue *fifo = calloc(1, sizeof(*fifo));
    pthread_t t;

    fifo->mut = calloc(1, sizeof(*fifo->mut)); //@make
    pthread_mutex_init(fifo->mut, NULL);
    fifo->left = 3;
    pthread_create(&t, NULL, consumer, fifo);  //@create
#ifdef FIXED
    pthread_join(t, NULL);
#endif
    window(600);
    fifo->mut = NULL;                          //@null
#ifndef FIXED
    pthread_join(t, NULL);
#endif
    return 0;
}
