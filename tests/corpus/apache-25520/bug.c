// SPDX-License-Identifier: MIT
// Apache 25520: two workers append to one log buffer: the index is read, the text copied, the index advanced, without a lock.
#include "../corpus.h"

static char log_buffer[256];
static unsigned out_count;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void append(const char *text, unsigned n)
{
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    char *to = &log_buffer[out_count];       //@index
    window(150);
    memcpy(to, text, n);                     //@copy
    out_count += n;                          //@advance
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

static void *worker(void *arg)
{
    window(300);
    append(arg, 4);                          //@append
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    pthread_create(&a, NULL, worker, "aaaa");
    pthread_create(&b, NULL, worker, "bbbb");
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    CHECK(log_buffer[4] != 0);               //@check
    return 0;
}
