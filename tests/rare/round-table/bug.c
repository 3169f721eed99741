/* SPDX-License-Identifier: MIT */
/* Four threads take two neighbouring locks each, twice. All have their first one: nobody goes on. */
#include <pthread.h>

#define SEATS 4
static pthread_mutex_t forks[SEATS];
static int meals[SEATS];

static void *eat(void *arg)
{
    int me = *(int *)arg;

    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&forks[me]);
        pthread_mutex_lock(&forks[(me + 1) % SEATS]);
        meals[me]++;
        pthread_mutex_unlock(&forks[(me + 1) % SEATS]);
        pthread_mutex_unlock(&forks[me]);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[SEATS];
    int numbers[SEATS];

    for (int i = 0; i < SEATS; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (int i = 0; i < SEATS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, eat, &numbers[i]);
    }
    for (int i = 0; i < SEATS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
