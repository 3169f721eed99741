// SPDX-License-Identifier: MIT
// A client asks whether the spooler stops without the lock, then queues its job; the printer has looked for the last time and is gone.
#include "../corpus.h"

struct job {
    unsigned pages;
    struct job *next;
};
struct spool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *head;
    volatile int stopping;
    unsigned accepted, printed;
};
static struct spool spool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0};
static unsigned long sheets;

static void render(struct job *j)
{
    char page[80];

    for (unsigned i = 0; i < j->pages; i++)
        memset(page, (int)('a' + i), sizeof(page));
    window(500);
}

static int print(struct spool *s, unsigned pages)
{
    struct job *j;

#ifndef FIXED
    if (s->stopping)                             //@test
        return -1;
#endif
    j = calloc(1, sizeof(*j));
    j->pages = pages;
    render(j);
    pthread_mutex_lock(&s->lock);
#ifdef FIXED
    if (s->stopping) {
        pthread_mutex_unlock(&s->lock);
        free(j);
        return -1;
    }
#endif
    j->next = s->head;
    s->head = j;                                 //@push
    s->accepted++;                               //@accept
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static void *printer(void *arg)
{
    struct spool *s = arg;

    for (;;) {
        struct job *j;

        pthread_mutex_lock(&s->lock);
        while (!s->head && !s->stopping)
            pthread_cond_wait(&s->changed, &s->lock);
        j = s->head;                             //@look
        if (!j)                                  //@none
            break;
        s->head = j->next;
        s->printed++;
        pthread_mutex_unlock(&s->lock);
        sheets += (j->pages + 1) / 2;
        window(100);
        free(j);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void *client(void *arg)
{
    long refused = 0;

    for (unsigned i = 1; i < 4; i++) {
        window(800);
        refused += print(arg, i * 3) < 0;
    }
    return (void *)refused;
}

int main(void)
{
    pthread_t c, p;
    void *refused;

    pthread_create(&p, NULL, printer, &spool);
    pthread_create(&c, NULL, client, &spool);
    window(5000);
    pthread_mutex_lock(&spool.lock);
    spool.stopping = 1;                          //@stop
    pthread_cond_signal(&spool.changed);
    pthread_mutex_unlock(&spool.lock);
    pthread_join(c, &refused);
    pthread_join(p, NULL);
    printf("%lu sheets, %ld refused\n", sheets, (long)refused);
    CHECK(spool.accepted == spool.printed);      //@check
    return 0;
}
