/* SPDX-License-Identifier: MIT */ /*
 * A collector: readers empty the spooled pipes, the reaper disposes of
 * the finished ones, and the journal notes how far we are.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONNS   48
#define READERS 2
#define BATCH   8           /* connections reaped at a time */

enum state { OPEN, CLOSING, GONE };

struct conn {
    int fd;
    enum state state;
    unsigned long bytes;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct conn conn[CONNS];
    int taken, closing, finished;
} tab = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static atomic_ulong received;

/* ---- journal: one segment at a time ---------------------------------- */

struct segment {
    int fd, records;
};

static int segment_write(struct segment *s, const void *p, size_t n)
{
    if (s->fd < 0) {
        s->fd = memfd_create("segment", 0);
        s->records = 0;
    }
    if (write(s->fd, p, n) != (ssize_t)n)
        return -errno;
    if (++s->records == 4) {
        if (close(s->fd) < 0)
            return -errno;
        s->fd = -1;
    }
    return 0;
}

static void *journal(void *arg)
{
    struct segment seg = { .fd = -1 };
    unsigned long *n = arg;
    char rec[256];
    int done = 0, rc;

    while (!done) {
        int len = snprintf(rec, sizeof rec, "%lu: %lu bytes so far\n", *n,
                           atomic_load(&received));
        if ((rc = segment_write(&seg, rec, (size_t)len)) < 0) {
            fprintf(stderr, "journal: record %lu: %s\n", *n, strerror(-rc));
            exit(4);
        }
        ++*n;
        if (*n % 8 == 0) {
            pthread_mutex_lock(&tab.lock);
            done = tab.finished == CONNS;
            pthread_mutex_unlock(&tab.lock);
        }
    }
    return NULL;
}

/* ---- connections ------------------------------------------------------ */

static void conn_eof(struct conn *c)
{
    close(c->fd);
#ifdef FIXED
    c->fd = -1;
#endif
    pthread_mutex_lock(&tab.lock);
    c->state = CLOSING;
    if (++tab.closing >= BATCH || tab.closing + tab.finished == CONNS)
        pthread_cond_signal(&tab.changed);
    pthread_mutex_unlock(&tab.lock);
}

static void conn_release(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->state = GONE;
    tab.closing--;
    tab.finished++;
}

static void *reaper(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&tab.lock);
    while (tab.finished < CONNS) {
        while (tab.closing < BATCH && tab.closing + tab.finished < CONNS)
            pthread_cond_wait(&tab.changed, &tab.lock);
        for (int i = 0; i < CONNS; i++)
            if (tab.conn[i].state == CLOSING)
                conn_release(&tab.conn[i]);
    }
    pthread_mutex_unlock(&tab.lock);
    return NULL;
}

static void *reader(void *arg)
{
    char buf[64];
    ssize_t n;

    (void)arg;
    for (;;) {
        struct conn *c = NULL;
        pthread_mutex_lock(&tab.lock);
        if (tab.taken < CONNS)
            c = &tab.conn[tab.taken++];
        pthread_mutex_unlock(&tab.lock);
        if (!c)
            return NULL;
        while ((n = read(c->fd, buf, sizeof buf)) > 0) {
            c->bytes += (unsigned long)n;
            atomic_fetch_add(&received, (unsigned long)n);
        }
        conn_eof(c);
    }
}

static int spool(struct conn *c, int k)
{
    char text[64];
    int p[2];

    if (pipe(p))
        return -1;
    for (int i = 0; i < 400; i++) {
        int len = snprintf(text, sizeof text, "conn %d item %d\n", k, i);
        if (write(p[1], text, (size_t)len) < 0)
            return -1;
    }
    c->fd = p[0];
    return close(p[1]);
}

int main(void)
{
    pthread_t j, r, rd[READERS];
    unsigned long records = 0;

    for (int k = 0; k < CONNS; k++)
        if (spool(&tab.conn[k], k))
            return 2;
    if (pthread_create(&j, NULL, journal, &records) || pthread_create(&r, NULL, reaper, NULL))
        return 2;
    for (int i = 0; i < READERS; i++)
        if (pthread_create(&rd[i], NULL, reader, NULL))
            return 2;
    for (int i = 0; i < READERS; i++)
        pthread_join(rd[i], NULL);
    pthread_join(r, NULL);
    pthread_join(j, NULL);
    printf("%d connections, %lu bytes\n", CONNS, atomic_load(&received));
    return 0;
}
