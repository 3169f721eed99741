/* SPDX-License-Identifier: MIT */
/* Fails an assertion in a thread; with an argument it passes, with two it ends with a status other than 0. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static int counter, limit;

static void *count(void *step)
{
    for (int i = 0; i < 4; i++)
        counter += *(int *)step;
    assert(counter <= limit);
    return NULL;
}

int main(int argc, char **argv)
{
    int step = argc;
    pthread_t thread;

    (void)argv;
    limit = argc > 1 ? 100 : 3;
    if (pthread_create(&thread, NULL, count, &step) != 0)
        return 2;
    pthread_join(thread, NULL);
    return argc > 2 ? counter : 0;
}
