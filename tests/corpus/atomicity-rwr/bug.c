// SPDX-License-Identifier: MIT
// Read, remote write, read: a pointer is tested, then used; another thread clears it in between.
#include "../corpus.h"

struct info {
    int length;
};
static struct info *proc_info;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void *user(void *arg)
{
    int n = 0;

    (void)arg;
    window(200);
    LOCK();
    if (proc_info) {                      //@test
        window(200);
        n = proc_info->length;            //@use
    }
    UNLOCK();
    return (void *)(long)n;
}

int main(void)
{
    static struct info info = {3};
    pthread_t t;

    proc_info = &info;                    //@set
    pthread_create(&t, NULL, user, NULL);
    window(400);
    LOCK();
    proc_info = NULL;                     //@clear
    UNLOCK();
    pthread_join(t, NULL);
    return 0;
}
