// SPDX-License-Identifier: MIT
// Read, remote write, write: an increment in two steps loses another thread's.
#include "../corpus.h"

static int balance;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void *deposit(void *arg)
{
    (void)arg;
    window(300);
    LOCK();
    int b = balance;                      //@read
    window(150);
    balance = b + 10;                     //@write
    UNLOCK();
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    pthread_create(&a, NULL, deposit, NULL);
    pthread_create(&b, NULL, deposit, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    CHECK(balance == 20);                 //@check
    return 0;
}
