// SPDX-License-Identifier: MIT
// Who returns a buffer chooses whom to wake by the bytes it holds, not by its size; the one who waits sleeps on.
#include "../corpus.h"

enum { SMALL = 64, LARGE = 1024, WORKERS = 2 };

struct chunk {
    struct chunk *next;
    unsigned size;
    unsigned used;
    char *bytes;
};
struct shelf {
    pthread_cond_t returned;
    struct chunk *chunks;
    unsigned size;
    unsigned taken;
};
struct arena {
    pthread_mutex_t lock;
    struct shelf small, large;
};
struct worker {
    struct arena *arena;
    const char *path;
    unsigned long sent;
};
static struct arena arena = {
    PTHREAD_MUTEX_INITIALIZER, {PTHREAD_COND_INITIALIZER, NULL, SMALL, 0}, {PTHREAD_COND_INITIALIZER, NULL, LARGE, 0}};

// The arena.
static struct shelf *shelf_for(struct arena *a, unsigned bytes)
{
    return bytes > a->small.size ? &a->large : &a->small; //@pick
}

static struct chunk *chunk_get(struct arena *a, unsigned bytes)
{
    struct shelf *s = shelf_for(a, bytes);
    struct chunk *c;

    pthread_mutex_lock(&a->lock);
    while (!s->chunks)                                    //@test
        pthread_cond_wait(&s->returned, &a->lock);        //@wait
    c = s->chunks;
    s->chunks = c->next;                                  //@take
    s->taken++;
    pthread_mutex_unlock(&a->lock);
    c->used = 0;
    return c;
}

static void chunk_put(struct arena *a, struct chunk *c)
{
    struct shelf *s = shelf_for(a, c->size);

    pthread_mutex_lock(&a->lock);
    c->next = s->chunks;
    s->chunks = c;                                        //@put
#ifndef FIXED
    s = shelf_for(a, c->used);                            //@choose
#endif
    pthread_cond_signal(&s->returned);                    //@wake
    pthread_mutex_unlock(&a->lock);
}

static void arena_fill(struct arena *a, unsigned size, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct chunk *c = calloc(1, sizeof(*c));

        c->size = size;
        c->bytes = malloc(size);
        chunk_put(a, c);
    }
}

// The server.
static unsigned checksum(const char *text, unsigned n)
{
    unsigned sum = 1;

    for (unsigned i = 0; i < n; i++)
        sum = (sum * 31 + (unsigned char)text[i]) % 65521;
    return sum;
}

static unsigned respond(struct arena *a, const char *path)
{
    struct chunk *head = chunk_get(a, SMALL), *body;
    unsigned sent;

    head->used = (unsigned)snprintf(head->bytes, head->size, "200 %s", path);
    window(500);
    body = chunk_get(a, LARGE);
    body->used = (unsigned)snprintf(body->bytes, body->size, "<p>%s</p>", path);
    window(350);
    sent = head->used + body->used + checksum(body->bytes, body->used) % 2;
    chunk_put(a, body);
    chunk_put(a, head);
    return sent;
}

static void *work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < 3; i++) {
        window(3000);
        w->sent += respond(w->arena, w->path);
    }
    return NULL;
}

int main(void)
{
    struct worker workers[WORKERS] = {{&arena, "/index", 0}, {&arena, "/about/us", 0}};
    pthread_t t[WORKERS];

    arena_fill(&arena, SMALL, WORKERS);
    arena_fill(&arena, LARGE, 1);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, work, &workers[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    printf("%lu and %lu bytes\n", workers[0].sent, workers[1].sent);
    return 0;
}
