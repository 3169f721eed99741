// SPDX-License-Identifier: MIT
// Who waits for a connection asks with "if", not "while": two are woken for one connection, and both take one.
#include "../corpus.h"

enum { CLIENTS = 3, CONNECTIONS = 1 };

struct connection {
    int id;
    unsigned long queries;
};
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    int idle;
    struct connection *items[CONNECTIONS];
};
static struct pool pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {NULL}};

static struct connection *acquire(struct pool *p)
{
    struct connection *c;

    pthread_mutex_lock(&p->lock);
#ifdef FIXED
    while (p->idle == 0)
#else
    if (p->idle == 0)                            //@test
#endif
        pthread_cond_wait(&p->freed, &p->lock);  //@wait
    p->idle--;                                   //@take
    CHECK(p->idle >= 0);                         //@check
    c = p->items[p->idle];
    pthread_mutex_unlock(&p->lock);
    return c;
}

static void release(struct pool *p, struct connection *c)
{
    pthread_mutex_lock(&p->lock);
    p->items[p->idle] = c;
    p->idle++;                                   //@put
    pthread_cond_broadcast(&p->freed);           //@wake
    pthread_mutex_unlock(&p->lock);
}

static unsigned query(struct connection *c, const char *text)
{
    unsigned hash = 5381;

    for (; *text; text++)
        hash = hash * 33 + (unsigned char)*text;
    c->queries++;
    window(400);
    return hash;
}

static void *client(void *arg)
{
    unsigned long answer = 0;

    for (int i = 0; i < 2; i++) {
        window(2500);
        struct connection *c = acquire(&pool);
        answer += query(c, arg);
        release(&pool, c);
    }
    return (void *)answer;
}

int main(void)
{
    static char *const texts[CLIENTS] = {"select 1", "begin", "select name from users"};
    pthread_t t[CLIENTS];

    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = calloc(1, sizeof(*c));
        c->id = i + 1;
        release(&pool, c);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&t[i], NULL, client, texts[i]);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(t[i], NULL);
    printf("%lu queries\n", pool.items[0]->queries);
    return 0;
}
