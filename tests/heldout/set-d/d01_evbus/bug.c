/* SPDX-License-Identifier: MIT */ /* evbus: an event bus with subscribers that come and stay.
 * The dispatcher never takes the lock: it reads the number of
 * subscribers and walks over that many slots.  Subscribing is rare
 * and serialised by the lock.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SUBS 16
#define N_EVENTS 700
#define PAYLOAD  2048

struct event {
    uint32_t seq;
    uint32_t crc;
    unsigned char payload[PAYLOAD];
};

struct tally {
    unsigned long seen;
    unsigned long matched;
    uint32_t last_seq;
};

typedef void (*event_fn)(struct tally *t, const struct event *ev);

struct subscriber {
    const char *name;
    event_fn fn;
    struct tally *tally;
    uint32_t first_seq;
};

struct bus {
    pthread_mutex_t lock;
    atomic_int n_subs;
    struct subscriber subs[MAX_SUBS];
    atomic_uint seq;
    atomic_int closed;
};

static struct bus bus = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- subscribers ---------------------------------------------------- */

static void on_any(struct tally *t, const struct event *ev)
{
    t->seen++;
    t->last_seq = ev->seq;
    t->matched++;
}

static void on_odd_crc(struct tally *t, const struct event *ev)
{
    t->seen++;
    t->last_seq = ev->seq;
    if (ev->crc & 1)
        t->matched++;
}

static struct subscriber *slot_take(struct bus *b)
{
    int n = atomic_load(&b->n_subs);

    if (n == MAX_SUBS)
        return NULL;
#ifndef FIXED
    atomic_store(&b->n_subs, n + 1);
#endif
    return &b->subs[n];
}

static int bus_subscribe(struct bus *b, const char *name, event_fn fn,
                         struct tally *tally)
{
    int rc = -1;

    pthread_mutex_lock(&b->lock);
    struct subscriber *s = slot_take(b);
    if (s) {
        s->name = name;
        s->fn = fn;
        s->first_seq = atomic_load(&b->seq);
        s->tally = tally;
#ifdef FIXED
        atomic_fetch_add(&b->n_subs, 1);
#endif
        rc = 0;
    }
    pthread_mutex_unlock(&b->lock);
    return rc;
}

/* ---- dispatcher ----------------------------------------------------- */

static void fill_event(struct event *ev, uint32_t seq)
{
    uint32_t c = 0xffffffffu;

    ev->seq = seq;
    for (int i = 0; i < PAYLOAD; i++) {
        ev->payload[i] = (unsigned char)(seq * 31 + i);
        c ^= ev->payload[i];
        for (int k = 0; k < 4; k++)
            c = (c >> 1) ^ (0xedb88320u & -(c & 1));
    }
    ev->crc = c;
}

static void bus_publish(struct bus *b, const struct event *ev)
{
    int n = atomic_load(&b->n_subs);

    for (int i = 0; i < n; i++) {
        struct subscriber *s = &b->subs[i];
        if (s->fn)
            s->fn(s->tally, ev);
    }
}

static void *dispatcher(void *arg)
{
    struct bus *b = arg;
    static struct event ev;

    for (uint32_t i = 1; i <= N_EVENTS; i++) {
        fill_event(&ev, i);
        atomic_store(&b->seq, i);
        bus_publish(b, &ev);
    }
    atomic_store(&b->closed, 1);
    return NULL;
}

int main(void)
{
    static struct tally tallies[8];
    static const char *names[8] = { "audit", "metrics", "mirror", "alerts",
                                    "billing", "search", "trace", "backup" };
    pthread_t tid;
    volatile unsigned spin = 0;

    if (pthread_create(&tid, NULL, dispatcher, &bus) != 0)
        return 2;
    for (int i = 0; i < 8; i++) {
        if (bus_subscribe(&bus, names[i], i % 2 ? on_odd_crc : on_any, &tallies[i]))
            return 2;
        while (atomic_load(&bus.seq) < (unsigned)(i + 1) * 40 && !atomic_load(&bus.closed))
            spin++;
    }
    pthread_join(tid, NULL);
    for (int i = 0; i < 8; i++)
        printf("%-8s from %4u: seen %5lu matched %5lu\n", bus.subs[i].name,
               bus.subs[i].first_seq, tallies[i].seen, tallies[i].matched);
    return 0;
}
