// SPDX-License-Identifier: MIT
// Transmission 1818: the event thread uses the session's bandwidth before the starting thread has set it.
#include "../corpus.h"

struct session {
    int *bandwidth;
    int ready;
};

static void *event_loop(void *arg)
{
    struct session *s = arg;

    window(300);
    CHECK(s->bandwidth != NULL);            //@check
    return NULL;
}

int main(void)
{
    struct session *s = calloc(1, sizeof(*s)); //@session
    pthread_t t;

#ifdef FIXED
    s->bandwidth = malloc(sizeof(int));
#endif
    pthread_create(&t, NULL, event_loop, s);   //@create
    window(300);
#ifndef FIXED
    s->bandwidth = malloc(sizeof(int));        //@set
#endif
    pthread_join(t, NULL);
    return 0;
}
