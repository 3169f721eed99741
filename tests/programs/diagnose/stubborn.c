/* SPDX-License-Identifier: MIT */
/* Hangs at a lock that it holds itself, and does not end by SIGTERM: a server would note it and end later. */
#include "turn.h"

#include <pthread.h>
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t asked;

static void on_term(int number)
{
    asked = number;
}

int main(void)
{
    signal(SIGTERM, on_term);
    pthread_mutex_lock(&lock);
    if (turn() % 2)
        pthread_mutex_lock(&lock); //@hang
    pthread_mutex_unlock(&lock);
    return 0;
}
