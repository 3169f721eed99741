/* SPDX-License-Identifier: MIT */
/* A lock-free stack of free slots: sometimes one slot is handed out twice, and an assertion fails. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define SLOTS 4
#define NONE 0xffffffffu

struct slot {
    _Atomic uint32_t next;
    atomic_int busy;
    int uses;
};

static struct slot slots[SLOTS];
static _Atomic uint64_t top; /* version in the upper half, index in the lower */

static uint64_t pack(uint32_t version, uint32_t index)
{
    return (uint64_t)version << 32 | index;
}

static void put(uint32_t index)
{
    uint64_t old = atomic_load(&top);

    atomic_store(&slots[index].busy, 0);
    do
        atomic_store(&slots[index].next, (uint32_t)old);
    while (!atomic_compare_exchange_weak(&top, &old, pack(old >> 32, index))); //@push
}

static uint32_t get(void)
{
    uint64_t old = atomic_load(&top); //@look
    uint32_t index, next;

    do {
        index = (uint32_t)old;
        if (index == NONE)
            return NONE;
        next = atomic_load(&slots[index].next); //@next
    } while (!atomic_compare_exchange_weak(&top, &old, pack(old >> 32, next))); //@pop
    int was = atomic_exchange(&slots[index].busy, 1); //@take
    assert(was == 0); //@check
    slots[index].uses++;
    return index;
}

static void *borrower(void *arg)
{
    uint32_t first = get();
    uint32_t second = get();

    (void)arg;
    if (first != NONE)
        put(first);
    uint32_t third = get();
    if (third != NONE)
        put(third);
    if (second != NONE)
        put(second);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];

    atomic_store(&top, pack(0, NONE));
    for (uint32_t i = 0; i < SLOTS; i++)
        put(i);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, borrower, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    int uses = 0;
    for (int i = 0; i < SLOTS; i++)
        uses += slots[i].uses;
    printf("%d uses\n", uses);
    return 0;
}
