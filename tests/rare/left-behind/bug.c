/* SPDX-License-Identifier: MIT */
/* Whoever finds the lock taken leaves its work to the holder. The holder looks for such work a moment before it unlocks, so that
 * work can stay behind. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int left;
static int done;

static void add(void)
{
    atomic_fetch_add(&left, 1);
    if (pthread_mutex_trylock(&lock) != 0)
        return;
    while (atomic_load(&left) > 0) {
        atomic_fetch_sub(&left, 1);
        done++;
    }
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++)
        add();
    return NULL;
}

int main(void)
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(done == 6 && left == 0);
    return 0;
}
