/* SPDX-License-Identifier: MIT */
/* Money moves between accounts with a lock each. The audit locks them one after the other, and sees money in between. */
#include <assert.h>
#include <pthread.h>

#define ACCOUNTS 3
static struct {
    pthread_mutex_t lock;
    int money;
} accounts[ACCOUNTS];

static void add(int i, int money)
{
    pthread_mutex_lock(&accounts[i].lock);
    accounts[i].money += money;
    pthread_mutex_unlock(&accounts[i].lock);
}

static void *move(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        add(0, 5);
        add(2, -5);
    }
    return NULL;
}

static void *audit(void *unused)
{
    int sum = 0;

    (void)unused;
    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_lock(&accounts[i].lock);
        sum += accounts[i].money;
        pthread_mutex_unlock(&accounts[i].lock);
    }
    assert(sum >= 300 - 5 && sum <= 300 + 5);
    return NULL;
}

int main(void)
{
    pthread_t a, b;

    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].money = 100;
    }
    pthread_create(&a, NULL, move, NULL);
    pthread_create(&b, NULL, audit, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
