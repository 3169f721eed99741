/* SPDX-License-Identifier: MIT */
/* Two tills take from one budget: sometimes it falls below zero and the program exits with 1. */
#include <pthread.h>
#include <stdio.h>

struct budget {
    pthread_mutex_t lock;
    int left;
    int refused;
};

struct order {
    const char *what;
    int price, count;
};

static struct budget budget = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = 100};

static int remaining(struct budget *b)
{
    pthread_mutex_lock(&b->lock);
    int left = b->left;
    pthread_mutex_unlock(&b->lock);
    return left;
}

static void spend(struct budget *b, int amount)
{
    pthread_mutex_lock(&b->lock);
    if (b->left < amount)
        b->refused++;
    else
    b->left -= amount;
    pthread_mutex_unlock(&b->lock);
}

static void refuse(struct budget *b)
{
    pthread_mutex_lock(&b->lock);
    b->refused++;
    pthread_mutex_unlock(&b->lock);
}

static void *till(void *arg)
{
    const struct order *o = arg;
    int cost = o->price * o->count;

    if (remaining(&budget) >= cost) {
        spend(&budget, cost);
    } else {
        refuse(&budget);
    }
    return NULL;
}

int main(void)
{
    static struct order orders[] = {{"chairs", 20, 3}, {"lamps", 35, 2}};
    pthread_t one, two;

    pthread_create(&one, NULL, till, &orders[0]);
    pthread_create(&two, NULL, till, &orders[1]);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d left, %d refused\n", budget.left, budget.refused);
    if (budget.left < 0)
        return 1;
    return 0;
}
