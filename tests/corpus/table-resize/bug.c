// SPDX-License-Identifier: MIT
// A hash table that grows is swapped in before the entries are moved; a lookup, which takes no lock, misses a key it must have.
#include "../corpus.h"

struct entry {
    unsigned key;
    unsigned hits;
};
struct table {
    unsigned mask;
    unsigned used;
    struct entry *slots[];
};
static struct table *volatile current;
static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;

static struct table *table_new(unsigned size)
{
    struct table *t = calloc(1, sizeof(*t) + size * sizeof(struct entry *)); //@alloc

    t->mask = size - 1;
    return t;
}

static void place(struct table *t, struct entry *e)
{
    unsigned i = e->key * 2654435761u >> 7;

    while (t->slots[i & t->mask])
        i++;
    t->slots[i & t->mask] = e;                       //@place
    t->used++;
}

static void grow(void)
{
    struct table *old = current;
    struct table *fresh = table_new((old->mask + 1) * 2); //@fresh

#ifndef FIXED
    current = fresh;                                 //@swap
    window(700);
#endif
    for (unsigned i = 0; i <= old->mask; i++)
        if (old->slots[i])
            place(fresh, old->slots[i]);
#ifdef FIXED
    __atomic_store_n(&current, fresh, __ATOMIC_RELEASE);
#endif
    // A reader may still be in the old table: it stays.
}

static void insert(unsigned key)
{
    struct entry *e = calloc(1, sizeof(*e));

    e->key = key;
    pthread_mutex_lock(&write_lock);
    if (current->used * 2 > current->mask)
        grow();
    place(current, e);
    pthread_mutex_unlock(&write_lock);
}

static struct entry *lookup(unsigned key)
{
    struct table *t = current;                       //@table
    struct entry *e;

    for (unsigned i = key * 2654435761u >> 7;; i++) {
        e = t->slots[i & t->mask];                   //@look
        if (!e || e->key == key)                     //@none
            return e;                                //@give
    }
}

static void *client(void *arg)
{
    unsigned long length = 0;
    char line[64];

    (void)arg;
    for (int i = 0; i < 3; i++) {
        window(1500);
        struct entry *e = lookup(10 + draw(4));      //@find
        e->hits++;                                   //@use
        length += (unsigned)snprintf(line, sizeof(line), "GET %u %u", e->key, e->hits);
    }
    return (void *)length;
}

int main(void)
{
    void *length;
    pthread_t t;

    current = table_new(8);
    for (unsigned key = 10; key < 14; key++)
        insert(key);
    pthread_create(&t, NULL, client, NULL);
    for (unsigned key = 20; key < 23; key++) {
        window(1500);
        insert(key);
    }
    pthread_join(t, &length);
    printf("%lu bytes of requests\n", (unsigned long)length);
    return 0;
}
