// SPDX-License-Identifier: MIT
// A thread uses a global that main sets only after having started it.
#include "../corpus.h"

static int *config;

static void *worker(void *arg)
{
    (void)arg;
    window(300);
    return (void *)(long)*config;             //@use
}

int main(void)
{
    static int value = 5;
    pthread_t t;

#ifdef FIXED
    config = &value;
#endif
    pthread_create(&t, NULL, worker, NULL);   //@create
    window(300);
    config = &value;                          //@set
    pthread_join(t, NULL);
    return 0;
}
