// SPDX-License-Identifier: MIT
// Whether the one logger exists is asked outside the lock that its making takes: two are made, and what the first one counted is lost.
#include "../corpus.h"

struct logger {
    pthread_mutex_t lock;
    unsigned lines;
    char last[64];
};
static struct logger *the_logger;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct logger *logger_new(void)
{
    struct logger *l = calloc(1, sizeof(*l));

    pthread_mutex_init(&l->lock, NULL);
    strcpy(l->last, "log begins");
    window(2000);
    return l;
}

static struct logger *logger_get(void)
{
#ifdef FIXED
    pthread_mutex_lock(&making);
    if (!the_logger)
        the_logger = logger_new();
    pthread_mutex_unlock(&making);
#else
    if (!the_logger) {                                //@check
        pthread_mutex_lock(&making);
        the_logger = logger_new();                    //@publish
        pthread_mutex_unlock(&making);
    }
#endif
    return the_logger;                                //@give
}

static void log_line(const char *who, int step)
{
    struct logger *l = logger_get();                  //@get

    pthread_mutex_lock(&l->lock);
    snprintf(l->last, sizeof(l->last), "%s: step %d", who, step);
    l->lines++;                                       //@count
    pthread_mutex_unlock(&l->lock);
}

static void *import(void *arg)
{
    unsigned rows = 0;

    window(10000);
    for (int i = 0; i < 3; i++) {
        log_line(arg, i);
        rows += 10 + draw(10);
        window(200);
    }
    return (void *)(unsigned long)rows;
}

int main(void)
{
    static char *const names[2] = {"users", "orders"};
    unsigned long rows = 0;
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, import, names[i]);
    for (int i = 0; i < 2; i++) {
        void *n;
        pthread_join(t[i], &n);
        rows += (unsigned long)n;
    }
    printf("%lu rows\n", rows);
    if (the_logger->lines != 6) {                     //@verify
        fprintf(stderr, "the log has %u lines\n", the_logger->lines);
        exit(1);                                      //@fail
    }
    return 0;
}
