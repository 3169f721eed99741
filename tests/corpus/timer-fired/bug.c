// SPDX-License-Identifier: MIT
// A timer that is due is called without the wheel's lock; who closes its owner meanwhile finds nothing to cancel.
#include "../corpus.h"

enum { CONNECTIONS = 3, TICKS = 8 };

struct timer {
    unsigned due;
    void (*fire)(void *owner);
    void *owner;
    struct timer *next;
};
struct wheel {
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct timer *armed;
    struct timer *firing;
    unsigned now;
};
struct buffer {
    unsigned used;
    char bytes[60];
};
struct connection {
    unsigned id;
    unsigned received;
    struct buffer *out;
    struct timer ping;
};
static struct wheel wheel = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0};

// The wheel.
static void timer_arm(struct wheel *w, struct timer *t, unsigned after)
{
    pthread_mutex_lock(&w->lock);
    t->due = w->now + after;
    t->next = w->armed;
    w->armed = t;
    pthread_mutex_unlock(&w->lock);
}

static void timer_cancel(struct wheel *w, struct timer *t)
{
    struct timer **p;

    pthread_mutex_lock(&w->lock);
#ifdef FIXED
    while (w->firing == t)
        pthread_cond_wait(&w->done, &w->lock);
#endif
    for (p = &w->armed; *p && *p != t; p = &(*p)->next) //@search
        ;
    if (*p)
        *p = t->next;
    pthread_mutex_unlock(&w->lock);
}

static struct timer *wheel_due(struct wheel *w)
{
    struct timer **p, *t;

    pthread_mutex_lock(&w->lock);
    for (p = &w->armed; (t = *p) && t->due > w->now; p = &t->next)
        ;
    if (t)
        *p = t->next;                                   //@unlink
    w->firing = t;
    pthread_mutex_unlock(&w->lock);
    return t;
}

static void wheel_done(struct wheel *w)
{
    pthread_mutex_lock(&w->lock);
    w->firing = NULL;
    pthread_cond_broadcast(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static void wheel_tick(struct wheel *w)
{
    struct timer *t;

    pthread_mutex_lock(&w->lock);
    w->now++;
    pthread_mutex_unlock(&w->lock);
    while ((t = wheel_due(w))) {                        //@take
        window(250);
        t->fire(t->owner);                              //@fire
        wheel_done(w);
    }
}

static void *ticker(void *arg)
{
    for (int i = 0; i < TICKS; i++) {
        window(800);
        wheel_tick(arg);
    }
    return NULL;
}

// The connections.
static void buffer_put(struct buffer *b, const char *verb, unsigned id)
{
    if (b->used + 16 < sizeof(b->bytes))                //@use
        b->used += (unsigned)snprintf(b->bytes + b->used, 16, "%s %u\n", verb, id);
}

static void connection_ping(void *owner)
{
    struct connection *c = owner;

    buffer_put(c->out, "PING", c->id);                  //@read
    timer_arm(&wheel, &c->ping, 2 + c->id % 2);
}

static struct connection *connection_open(unsigned id)
{
    struct connection *c = calloc(1, sizeof(*c));

    c->id = id;
    c->out = calloc(1, sizeof(*c->out));
    c->ping.fire = connection_ping;
    c->ping.owner = c;
    timer_arm(&wheel, &c->ping, 1 + id);
    return c;
}

static void connection_receive(struct connection *c, const char *line)
{
    c->received += (unsigned)strcspn(line, "\r\n");
    window(600);
}

static void connection_close(struct connection *c)
{
    timer_cancel(&wheel, &c->ping);
    free(c->out);
    c->out = NULL;                                      //@drop
}

int main(void)
{
    struct connection *open[CONNECTIONS];
    unsigned received = 0;
    pthread_t t;

    for (unsigned i = 0; i < CONNECTIONS; i++)
        open[i] = connection_open(i);
    pthread_create(&t, NULL, ticker, &wheel);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        connection_receive(open[i], "GET /index\r\n");
        connection_close(open[i]);
        received += open[i]->received;
    }
    pthread_join(t, NULL);
    printf("%u bytes in %u ticks\n", received, wheel.now);
    return 0;
}
