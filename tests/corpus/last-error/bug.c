// SPDX-License-Identifier: MIT
// The code of the last error is one for all threads: before a failed statement is explained, another thread's statement resets it.
#include "../corpus.h"

enum { E_NONE, E_TABLE, E_LOCKED, E_SYNTAX };

struct message {
    unsigned severity;
    const char *text;
};
struct client {
    const char *const *statements;
    unsigned rows;
    unsigned complaints;
};
static const struct message no_table = {2, "no such table"};
static const struct message locked = {1, "table is locked"};
static const struct message syntax = {3, "syntax error"};
static const struct message *const messages[] = {NULL, &no_table, &locked, &syntax};
#ifdef FIXED
static __thread int last_error;
#else
static volatile int last_error;
#endif

static unsigned scan(const char *sql)
{
    unsigned words = 1;

    for (; *sql; sql++)
        words += *sql == ' ';
    window(300);
    return words * 3;
}

static int execute(const char *sql)
{
    last_error = E_NONE;                              //@reset
    if (strncmp(sql, "select", 6) != 0) {
        last_error = E_SYNTAX;                        //@fail
        return -1;
    }
    if (strstr(sql, "jobs")) {
        last_error = E_LOCKED;
        return -1;
    }
    return (int)scan(sql);
}

static unsigned explain(const char *sql)
{
    char line[80];
    const struct message *m;

    snprintf(line, sizeof(line), "statement: %s", sql);
    window(150);
    m = messages[last_error];                         //@look
    return m->severity;                               //@use
}

static void *run(void *arg)
{
    struct client *c = arg;

    for (int i = 0; c->statements[i]; i++) {
        int n;

        window(1500);
        n = execute(c->statements[i]);
        if (n < 0)
            c->complaints += explain(c->statements[i]);
        else
            c->rows += (unsigned)n;
    }
    return NULL;
}

int main(void)
{
    static const char *const web[] = {"select name from users", "selct id from users", "select 1", "insert twice", NULL};
    static const char *const cron[] = {"select a from b", "select x, y from points", "select 2", "select t from log", NULL};
    struct client clients[2] = {{web, 0, 0}, {cron, 0, 0}};
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, run, &clients[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++)
        printf("%u rows, %u complaints\n", clients[i].rows, clients[i].complaints);
    return 0;
}
