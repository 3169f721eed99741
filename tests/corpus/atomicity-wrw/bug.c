// SPDX-License-Identifier: MIT
// Write, remote read, write: a state that should never be seen is seen between two writes.
#include "../corpus.h"

enum { IDLE, HALF, DONE };
static int state;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void *update(void *arg)
{
    (void)arg;
    window(200);
    LOCK();
    state = HALF;                         //@half
    window(300);
    state = DONE;                         //@done
    UNLOCK();
    return NULL;
}

int main(void)
{
    pthread_t t;
    int seen;

    pthread_create(&t, NULL, update, NULL);
    window(500);
    LOCK();
    seen = state;                         //@read
    UNLOCK();
    CHECK(seen != HALF);                  //@check
    pthread_join(t, NULL);
    return 0;
}
