/* SPDX-License-Identifier: MIT */
/* handle() is called 1,000 times. Call 701 sleeps 3 ms. Call 820 makes the table grow. Compiles as C and as C++. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned *table, capacity = 1u << 16, used;

__attribute__((noinline)) static void put(unsigned key)
{
    unsigned i = key * 2654435761u % capacity;

    while (table[i])
        i = (i + 1) % capacity;
    table[i] = key;
}

__attribute__((noinline)) static void rehash(void)
{
    unsigned *old = table, n = capacity;

    capacity *= 2;
    table = (unsigned *)calloc(capacity, sizeof(*table));
    for (unsigned i = 0; i < n; i++)
        if (old[i])
            put(old[i]);
    free(old);
}

__attribute__((noinline)) static void backoff(void)
{
    struct timespec time = {0, 3000000};

    nanosleep(&time, NULL);
}

__attribute__((noinline)) static void insert(unsigned key)
{
    if (used * 4 >= capacity * 3)
        rehash();
    put(key);
    used++;
}

__attribute__((noinline)) static void handle(unsigned n)
{
    for (unsigned i = 1; i <= 60; i++)
        insert(n * 60 + i);
    if (n == 700)
        backoff();
}

int main(void)
{
    table = (unsigned *)calloc(capacity, sizeof(*table));
    for (unsigned n = 0; n < 1000; n++)
        handle(n);
    printf("%u\n", used);
    return 0;
}
