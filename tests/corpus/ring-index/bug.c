// SPDX-License-Identifier: MIT
// A producer of a ring advances the index before it stores the item; the consumer sees the index and fetches what was there before.
#include "../corpus.h"

enum { SLOTS = 4, ITEMS = 5 };

struct ring {
    volatile unsigned head, tail;
    volatile unsigned slots[SLOTS];
};
static struct ring ring;

static unsigned sensor(unsigned i)
{
    static const unsigned noise[] = {3, 1, 4, 1, 5, 9, 2, 6};

    return noise[i % 8];
}

static void put(struct ring *r, unsigned item)
{
    unsigned slot = r->head % SLOTS;

    while (r->head - r->tail == SLOTS)
        window(50);
#ifdef FIXED
    r->slots[slot] = item;
    __atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
#else
    r->head = r->head + 1;                     //@advance
    window(30);
    r->slots[slot] = item;                     //@store
#endif
}

static unsigned get(struct ring *r)
{
    unsigned item;

    while (r->tail == r->head)                 //@look
        window(3000);
    item = r->slots[r->tail % SLOTS];          //@fetch
    r->tail = r->tail + 1;
    return item;                               //@give
}

static void *producer(void *arg)
{
    for (unsigned i = 1; i <= ITEMS; i++) {
        window(3000);
        put(arg, i * 16 + sensor(i));
    }
    return NULL;
}

int main(void)
{
    unsigned highest = 0;
    pthread_t t;

    pthread_create(&t, NULL, producer, &ring);
    for (unsigned i = 1; i <= ITEMS; i++) {
        unsigned item = get(&ring);            //@get
        CHECK(item / 16 == i);                 //@check
        if (item % 16 > highest)
            highest = item % 16;
    }
    pthread_join(t, NULL);
    printf("highest %u\n", highest);
    return 0;
}
