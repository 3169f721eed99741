/* SPDX-License-Identifier: MIT */
/* A table grows on demand: the reader lock is given up before the writer lock is taken, so it can grow twice, and an entry is lost. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int *entries, room = 2, used;

static void grow(int wanted)
{
    int *larger = calloc((size_t)wanted, sizeof(int));

    memcpy(larger, entries, (size_t)used * sizeof(int));
    free(entries);
    entries = larger;
    room = wanted;
}

static void add(int value)
{
    int full, now;

    pthread_rwlock_rdlock(&lock);
    full = used == room;
    now = used;
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&lock);
    if (full)
        grow(room * 2);
    assert(now <= used && used < room);
    entries[used++] = value;
    pthread_rwlock_unlock(&lock);
}

static void *writer(void *arg)
{
    for (int i = 0; i < 3; i++)
        add(*(int *)arg + i);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int first[2] = {10, 20};

    entries = calloc((size_t)room, sizeof(int));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, writer, &first[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
