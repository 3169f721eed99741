// SPDX-License-Identifier: MIT
// Two threads both find a buffer that is still there, and both free it.
#include "../corpus.h"

static char *buffer;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void *closer(void *arg)
{
    (void)arg;
    window(300);
    LOCK();
    if (buffer) {                  //@test
        char *mine = buffer;       //@take
        window(150);
        buffer = NULL;             //@clear
        free(mine);                //@free
    }
    UNLOCK();
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    buffer = malloc(4000);         //@make
    pthread_create(&a, NULL, closer, NULL);
    pthread_create(&b, NULL, closer, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
