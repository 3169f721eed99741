// SPDX-License-Identifier: MIT
// One thread frees a session that another still uses: the allocator's own list lies where the pointer was.
#include "../corpus.h"

struct session {
    const char *user;
    int id;
};
static struct session *active;

static void *logger(void *arg)
{
    struct session *s = active;              //@take
    int c = 0;

    (void)arg;
    window(300);
    c = s->user[0];                          //@use
    return (void *)(long)c;
}

int main(void)
{
    pthread_t t;
    struct session *s = malloc(sizeof(*s)), *spare = malloc(sizeof(*spare));

    s->user = "root";                        //@make
    active = s;                              //@publish
    pthread_create(&t, NULL, logger, NULL);  //@create
#ifdef FIXED
    pthread_join(t, NULL);
#endif
    window(300);
    free(spare);
    free(s);                                 //@free
#ifndef FIXED
    pthread_join(t, NULL);
#endif
    return 0;
}
