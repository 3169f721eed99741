// SPDX-License-Identifier: MIT
// SQLite 1672: whether the caller is inside already is noted and tested without the lock that guards it; a thread that is
// inside takes the lock again and waits for ever.
#include "../corpus.h"

static pthread_mutex_t main_mutex = PTHREAD_MUTEX_INITIALIZER;
static int in_mutex;
static pthread_t owner;

static int enter(void)
{
    if (in_mutex && pthread_equal(owner, pthread_self()))  //@test
        return 1;
    pthread_mutex_lock(&main_mutex);                       //@lock
    in_mutex = 1;                                          //@inside
    owner = pthread_self();                                //@owner
    return 0;
}

static void leave(int nested)
{
    if (nested)
        return;
#ifdef FIXED
    in_mutex = 0;
    pthread_mutex_unlock(&main_mutex);
#else
    pthread_mutex_unlock(&main_mutex);                     //@unlock
    window(60);
    in_mutex = 0;                                          //@outside
#endif
}

static void *worker(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        window(300);
        int outer = enter();                               //@outer
        window(100);
        int inner = enter();                               //@inner
        leave(inner);
        leave(outer);
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    pthread_create(&a, NULL, worker, NULL);
    pthread_create(&b, NULL, worker, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
