/* SPDX-License-Identifier: MIT */
/* The library of the stock. The count of what was taken is not under the lock. */
#include "store.h"

#include <pthread.h>

int stock_left, stock_taken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void stock_fill(int items)
{
    stock_left = items;
    stock_taken = 0;
}

int stock_take(void)
{
    int got = 0;

    pthread_mutex_lock(&lock);
    if (stock_left > 0) {
        stock_left--;
        got = 1;
    }
    pthread_mutex_unlock(&lock);
    if (got)
        stock_taken++;
    return got;
}
