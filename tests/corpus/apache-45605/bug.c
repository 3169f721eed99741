// SPDX-License-Identifier: MIT
// Apache 45605: the count of idle workers and the state of the queue are changed in two steps; a push finds no room.
#include "../corpus.h"

struct fd_queue {
    int idlers;
    int elements;
    int bounds;
};
static struct fd_queue queue = {0, 0, 1};
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
#ifdef FIXED
        pthread_mutex_lock(&one);
        if (queue.elements > 0)
            queue.elements--;
        queue.idlers = 1;
        pthread_mutex_unlock(&one);
#else
        pthread_mutex_lock(&one);
        queue.idlers = 1;                          //@idle
        pthread_mutex_unlock(&one);
        window(200);
        pthread_mutex_lock(&one);
        if (queue.elements > 0)
            queue.elements--;                      //@pop
        pthread_mutex_unlock(&one);
#endif
        window(200);
    }
    return NULL;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, worker, NULL);
    for (int i = 0; i < 4; i++) {
        window(200);
        pthread_mutex_lock(&one);
        if (queue.idlers > 0) {                    //@test
            CHECK(queue.elements < queue.bounds);  //@check
            queue.elements++;                      //@push
            queue.idlers--;                        //@take
        }
        pthread_mutex_unlock(&one);
    }
    pthread_join(t, NULL);
    return 0;
}
