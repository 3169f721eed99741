// SPDX-License-Identifier: MIT
// A sender asks whether the connection is open and then writes to its buffer; the closer takes the buffer away in between.
#include "../corpus.h"

struct connection {
    char *buffer;
    int sent;
};
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void put(struct connection *c, const char *text)
{
    LOCK();
    if (c->buffer) {                       //@open
        window(200);
        c->buffer[0] = text[0];            //@write
        c->sent++;
    }
    UNLOCK();
}

static void *sender(void *arg)
{
    window(200);
    put(arg, "hello");                     //@put
    return NULL;
}

int main(void)
{
    struct connection *c = calloc(1, sizeof(*c));
    pthread_t t;

    c->buffer = malloc(64);                //@make
    pthread_create(&t, NULL, sender, c);
    window(400);
    LOCK();
    c->buffer = NULL;                      //@close
    UNLOCK();
    pthread_join(t, NULL);
    return 0;
}
