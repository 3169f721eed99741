/* SPDX-License-Identifier: MIT */
/* Two threads of the program count in the library. All shared accesses are in the library. */
#include "counter.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

int total = 7;

int step(void)
{
    return 100;
}

const char *counter_name(void)
{
    return "program";
}

static int begun;

__attribute__((constructor)) static void begin(void)
{
    begun = counter_begun(); /* the library began before */
}

int main(void)
{
    pthread_t threads[2];

    if (!begun || total != 7 || step() != 100 || strcmp(counter_name_inside(), "program") != 0)
        return 3;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, counter_run, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", counter_total());
    return counter_total() == 2 ? 0 : 1;
}
