/* SPDX-License-Identifier: MIT */
/* Three threads move amounts between three ledgers: sometimes none of them goes on. */
#include <pthread.h>
#include <stdio.h>

#define LEDGERS 3

struct ledger {
    pthread_mutex_t lock;
    long amount;
    int entries;
};

struct move {
    int from, to;
    long amount;
};

static struct ledger ledgers[LEDGERS];

static void book(struct ledger *l, long amount)
{
    l->amount += amount;
    l->entries++;
}

static void move(const struct move *m)
{
    struct ledger *from = &ledgers[m->from], *to = &ledgers[m->to];
    struct ledger *first = from, *second = to;

    pthread_mutex_lock(&first->lock); //@outer
    pthread_mutex_lock(&second->lock); //@inner
    book(from, -m->amount);
    book(to, m->amount);
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
}

static void *clerk(void *arg)
{
    move(arg);
    return NULL;
}

int main(void)
{
    static struct move moves[LEDGERS] = {{0, 1, 30}, {1, 2, 20}, {2, 0, 10}};
    pthread_t clerks[LEDGERS];
    long sum = 0;

    for (int i = 0; i < LEDGERS; i++) {
        pthread_mutex_init(&ledgers[i].lock, NULL);
        ledgers[i].amount = 100;
    }
    for (int i = 0; i < LEDGERS; i++)
        pthread_create(&clerks[i], NULL, clerk, &moves[i]);
    for (int i = 0; i < LEDGERS; i++)
        pthread_join(clerks[i], NULL);
    for (int i = 0; i < LEDGERS; i++)
        sum += ledgers[i].amount;
    printf("sum %ld\n", sum);
    return sum == 100 * LEDGERS ? 0 : 1;
}
