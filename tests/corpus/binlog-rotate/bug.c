// SPDX-License-Identifier: MIT
// MySQL 791: the log is rotated by closing it and opening it again; who asks in between whether it is open does not log its row.
#include "../corpus.h"

enum { ROWS = 4 };
enum log_state { CLOSED, OPEN };

struct binlog {
    pthread_mutex_t lock;
    volatile enum log_state state;
    unsigned number;
    unsigned end;
    char name[32];
};
struct row {
    unsigned key;
    unsigned value;
    unsigned position; // in the log, 0 if it is not there
};
static struct binlog binlog = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = 4};
static struct row table[ROWS];

static void log_close(struct binlog *log)
{
    log->state = CLOSED;                              //@close
}

static void log_open(struct binlog *log)
{
    log->number++;
    snprintf(log->name, sizeof(log->name), "bin.%06u", log->number);
    window(120);
    log->state = OPEN;                                //@open
}

static void log_rotate(struct binlog *log)
{
    pthread_mutex_lock(&log->lock);
    log_close(log);
    log_open(log);
    pthread_mutex_unlock(&log->lock);
}

static unsigned log_write(struct binlog *log, unsigned bytes)
{
    unsigned at;

#ifdef FIXED
    pthread_mutex_lock(&log->lock);
    at = log->end;
    log->end += bytes;
    pthread_mutex_unlock(&log->lock);
#else
    if (log->state != OPEN)                           //@test
        return 0;                                     //@skip
    pthread_mutex_lock(&log->lock);
    at = log->end;
    log->end += bytes;
    pthread_mutex_unlock(&log->lock);
#endif
    return at;
}

static unsigned encode(const struct row *r, char *text, size_t n)
{
    return (unsigned)snprintf(text, n, "insert into t values (%u, %u)", r->key, r->value);
}

static void insert(struct row *r, unsigned key, unsigned value)
{
    char text[64];
    unsigned bytes;

    r->key = key;
    r->value = value;
    bytes = encode(r, text, sizeof(text));
    r->position = log_write(&binlog, bytes);          //@place
}

static void *session(void *arg)
{
    struct row *rows = arg;

    for (unsigned i = 0; i < ROWS; i++) {
        window(1000);
        insert(&rows[i], i + 1, 100 - i);
    }
    return NULL;
}

int main(void)
{
    unsigned lost = 0, values = 0;
    pthread_t t;

    log_open(&binlog);
    pthread_create(&t, NULL, session, table);
    for (int i = 0; i < 2; i++) {
        window(1500);
        log_rotate(&binlog);
    }
    pthread_join(t, NULL);
    for (int i = 0; i < ROWS; i++) {
        values += table[i].value;
        if (table[i].position == 0)                   //@missing
            lost++;                                   //@lost
    }
    printf("values %u, log %s ends at %u\n", values, binlog.name, binlog.end);
    return lost > 0;                                  //@exit
}
