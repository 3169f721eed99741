/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define RECORDS 16
#define WRITERS 2
#define LINES 2

struct record {
    int level;
    int length;
    char text[40];
};

struct buffer {
    atomic_int used;
    struct record records[RECORDS];
};

struct log {
    pthread_mutex_t lock;
    struct buffer buffers[2];
    _Atomic(struct buffer *) current;
    int flushed;
    long bytes;
};

static struct log journal = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_init(struct log *log)
{
    atomic_store(&log->current, &log->buffers[0]);
}

static struct record *claim(struct log *log)
{
    struct buffer *b = atomic_load(&log->current); //@current
    int place = atomic_fetch_add(&b->used, 1); //@claim

    return place < RECORDS ? &b->records[place] : NULL;
}

static void fill(struct record *r, int level, const char *text)
{
    size_t length = strlen(text);

    if (length >= sizeof r->text)
        length = sizeof r->text - 1;
    r->level = level;
    memcpy(r->text, text, length);
    r->text[length] = '\0';
    r->length = (int)length; //@length
}

static void log_line(struct log *log, int level, const char *text)
{
#ifdef FIXED
    pthread_mutex_lock(&log->lock);
#endif
    struct record *r = claim(log); //@mine

    if (r)
        fill(r, level, text);
#ifdef FIXED
    pthread_mutex_unlock(&log->lock);
#endif
}

static void emit(struct log *log, struct record *r)
{
    assert(r->length > 0); //@check
    log->bytes += r->length;
    log->flushed++;
    memset(r, 0, sizeof *r);
}

static void flush(struct log *log)
{
    struct buffer *full, *other;
    int count;

    pthread_mutex_lock(&log->lock);
    full = atomic_load(&log->current);
    other = full == &log->buffers[0] ? &log->buffers[1] : &log->buffers[0];
    atomic_store(&log->current, other); //@swap
    count = atomic_exchange(&full->used, 0); //@used
    for (int i = 0; i < count && i < RECORDS; i++)
        emit(log, &full->records[i]); //@emit
    pthread_mutex_unlock(&log->lock);
}

static void *writer(void *arg)
{
    const char *name = arg;
    char line[40];

    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "%s line %d", name, i);
        log_line(&journal, i % 3, line);
    }
    return NULL;
}

static void *flusher(void *arg)
{
    flush(arg);
    return NULL;
}

int main(void)
{
    static char *names[WRITERS] = {"reader", "parser"};
    pthread_t writers[WRITERS], flushing;

    log_init(&journal);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&writers[i], NULL, writer, names[i]);
    pthread_create(&flushing, NULL, flusher, &journal);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    pthread_join(flushing, NULL);
    flush(&journal);
    printf("%d lines, %ld bytes\n", journal.flushed, journal.bytes);
    return 0;
}
