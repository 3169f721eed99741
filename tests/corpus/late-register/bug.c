// SPDX-License-Identifier: MIT
// A call is sent first and entered among the pending ones then; a reply that is quicker finds nobody, and the caller waits for ever.
#include "../corpus.h"

enum { SLOTS = 8, CALLS = 3 };

struct message {
    unsigned id;
    unsigned value;
};
struct wire {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct message items[SLOTS];
    unsigned head, tail;
};
struct call {
    unsigned id;
    unsigned value;
    int done;
};
static struct wire wire = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t replied = PTHREAD_COND_INITIALIZER;
static struct call *pending[SLOTS];
static unsigned unmatched;

static void wire_put(struct wire *w, const struct message *m)
{
    pthread_mutex_lock(&w->lock);
    w->items[w->tail % SLOTS] = *m;
    w->tail++;
    pthread_cond_signal(&w->filled);
    pthread_mutex_unlock(&w->lock);
}

static struct message wire_get(struct wire *w)
{
    struct message m;

    pthread_mutex_lock(&w->lock);
    while (w->head == w->tail)
        pthread_cond_wait(&w->filled, &w->lock);
    m = w->items[w->head % SLOTS];
    w->head++;
    pthread_mutex_unlock(&w->lock);
    return m;
}

static void call_enter(struct call *c)
{
    pthread_mutex_lock(&calls_lock);
    pending[c->id % SLOTS] = c;                       //@enter
    pthread_mutex_unlock(&calls_lock);
}

static void deliver(const struct message *m)
{
    struct call *c;

    pthread_mutex_lock(&calls_lock);
    c = pending[m->id % SLOTS];                       //@search
    if (c) {                                          //@known
        pending[m->id % SLOTS] = NULL;
        c->value = m->value;
        c->done = 1;
        pthread_cond_signal(&replied);
    } else {
        unmatched++;
    }
    pthread_mutex_unlock(&calls_lock);
}

static void *service(void *arg)
{
    struct message m;

    (void)arg;
    do {
        m = wire_get(&wire);
        window(1200);
        m.value = m.value * m.value + 1;
        deliver(&m);
    } while (m.id != CALLS);
    return NULL;
}

static unsigned call(unsigned id, unsigned value)
{
    struct call c = {id, 0, 0};
    struct message m = {id, value};
    char note[40];

#ifdef FIXED
    call_enter(&c);
    wire_put(&wire, &m);
    snprintf(note, sizeof(note), "call %u (%u)", id, value);
    window(200);
#else
    wire_put(&wire, &m);                              //@send
    snprintf(note, sizeof(note), "call %u (%u)", id, value);
    window(200);
    call_enter(&c);
#endif
    pthread_mutex_lock(&calls_lock);
    while (!c.done)                                   //@test
        pthread_cond_wait(&replied, &calls_lock);     //@wait
    pthread_mutex_unlock(&calls_lock);
    return c.value + (unsigned)strlen(note);
}

int main(void)
{
    unsigned total = 0;
    pthread_t t;

    pthread_create(&t, NULL, service, NULL);
    for (unsigned id = 1; id <= CALLS; id++)
        total += call(id, 5 * id);
    pthread_join(t, NULL);
    printf("total %u, %u unmatched\n", total, unmatched);
    return 0;
}
