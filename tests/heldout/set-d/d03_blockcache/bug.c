/* SPDX-License-Identifier: MIT */ /*
 * A tiny write-back block cache with a journal.
 *
 * Writers change blocks in the cache and note each change in the
 * journal.  A flusher commits the journal now and then, which makes the
 * blocks clean again.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBLOCKS   32
#define JOURNAL   16
#define N_WRITERS 3
#define N_WRITES  20000

struct block {
    unsigned version;
    unsigned committed;
    int dirty;
    unsigned char data[64];
};

static struct {
    pthread_mutex_t lock;
    struct block blocks[NBLOCKS];
    unsigned long writes;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t room;
    int n;
    struct { int block; unsigned version; } rec[JOURNAL];
    unsigned long commits;
    int closing;
} journal = { .lock = PTHREAD_MUTEX_INITIALIZER,
              .room = PTHREAD_COND_INITIALIZER };

static void journal_commit(void);

/* Is there room for one more record?  Commits when there is none. */
static void journal_reserve(void)
{
    pthread_mutex_lock(&journal.lock);
    int full = journal.n >= JOURNAL - N_WRITERS;
    pthread_mutex_unlock(&journal.lock);
    if (full)
        journal_commit();
}

static void journal_append(int block, unsigned version)
{
    pthread_mutex_lock(&journal.lock);
    if (journal.n < JOURNAL) {
        journal.rec[journal.n].block = block;
        journal.rec[journal.n].version = version;
        journal.n++;
    }
    pthread_mutex_unlock(&journal.lock);
}

static void cache_write(int block, const void *data, size_t len)
{
    journal_reserve();

    pthread_mutex_lock(&cache.lock);
    struct block *b = &cache.blocks[block];
    memcpy(b->data, data, len < sizeof b->data ? len : sizeof b->data);
    b->version++;
    b->dirty = 1;
    cache.writes++;
    journal_append(block, b->version);
    pthread_mutex_unlock(&cache.lock);
}

static void cache_mark_clean(int block, unsigned version)
{
    pthread_mutex_lock(&cache.lock);
    struct block *b = &cache.blocks[block];
    if (version > b->committed)
        b->committed = version;
    if (b->committed == b->version)
        b->dirty = 0;
    pthread_mutex_unlock(&cache.lock);
}

static void journal_commit(void)
{
    struct { int block; unsigned version; } done[JOURNAL];
    int n;

    pthread_mutex_lock(&journal.lock);
    n = journal.n;
    memcpy(done, journal.rec, sizeof done);
    journal.n = 0;
    journal.commits++;
#ifdef FIXED
    pthread_mutex_unlock(&journal.lock);
#endif
    for (int i = 0; i < n; i++)
        cache_mark_clean(done[i].block, done[i].version);
#ifndef FIXED
    pthread_mutex_unlock(&journal.lock);
#endif
}

static void *writer(void *arg)
{
    unsigned id = (unsigned)(size_t)arg, x = id * 7919u + 1;
    char text[64];

    for (int i = 0; i < N_WRITES; i++) {
        x = x * 1103515245u + 12345u;
        int len = snprintf(text, sizeof text, "writer %u record %d", id, i);
        cache_write((int)((x >> 16) % NBLOCKS), text, (size_t)len + 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t t[N_WRITERS];
    int dirty = 0;

    for (size_t i = 0; i < N_WRITERS; i++)
        if (pthread_create(&t[i], NULL, writer, (void *)i))
            return 2;
    for (int i = 0; i < N_WRITERS; i++)
        pthread_join(t[i], NULL);
    journal_commit();

    for (int i = 0; i < NBLOCKS; i++)
        dirty += cache.blocks[i].dirty;
    printf("%lu writes, %lu commits, %d blocks dirty\n",
           cache.writes, journal.commits, dirty);
    return dirty != 0;
}
