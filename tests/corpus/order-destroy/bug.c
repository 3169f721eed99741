// SPDX-License-Identifier: MIT
// Main takes the table down while a worker may still read from it.
#include "../corpus.h"

struct table {
    const char **names;
    int n;
};

static void *reader(void *arg)
{
    struct table *t = arg;
    int total = 0;

    for (int i = 0; i < t->n; i++) {
        window(150);
        total += t->names[i][0];              //@read
    }
    return (void *)(long)total;
}

int main(void)
{
    static const char *names[] = {"a", "b", "c", "d"};
    struct table *t = calloc(1, sizeof(*t));
    pthread_t id;

    t->names = names;                         //@make
    t->n = 4;
    pthread_create(&id, NULL, reader, t);     //@create
#ifdef FIXED
    pthread_join(id, NULL);
#endif
    window(900);
    t->names = NULL;                          //@destroy
#ifndef FIXED
    pthread_join(id, NULL);
#endif
    return 0;
}
