/* SPDX-License-Identifier: MIT */
/* A table that is made when it is first needed: sometimes a lookup crashes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
    unsigned count;
    unsigned char *classes;
};

static struct table *table;
static atomic_int state; /* 0: none, 1: being made, 2: there */

static unsigned char *classify(void)
{
    unsigned char *classes = malloc(256);

    for (int i = 0; i < 256; i++)
        classes[i] = (unsigned char)((i >= '0' && i <= '9') ? 1 : (i >= 'a' && i <= 'z') ? 2 : 0);
    return classes;
}

static struct table *make(void)
{
    struct table *made = calloc(1, sizeof *made);

    made->classes = classify();
    made->count = 256;
    table = made;
    atomic_store(&state, 2);
    return made;
}

static struct table *get(void)
{
    int none = 0;

    if (atomic_load(&state) == 2)
        return table;
    if (atomic_compare_exchange_strong(&state, &none, 1))
        return make();
    while (atomic_load(&state) != 2)
        ;
    return table;
}

static void *lexer(void *arg)
{
    const char *text = arg;
    long words = 0;
    struct table *known = get();

    for (const char *p = text; *p; p++)
        words += known->classes[(unsigned char)*p] == 2;
    return (void *)words;
}

int main(void)
{
    pthread_t one, two;
    void *a, *b;

    pthread_create(&one, NULL, lexer, "x = 41 + y");
    pthread_create(&two, NULL, lexer, "while 3 do");
    pthread_join(one, &a);
    pthread_join(two, &b);
    printf("%ld letters\n", (long)a + (long)b);
    return 0;
}
