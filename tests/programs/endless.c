/* SPDX-License-Identifier: MIT */
/* Says that it runs and then runs until it is killed, in two threads; or waits, with an argument. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

volatile unsigned long counter = 4;

static void *run(void *argument)
{
    /* A loop without a conditional branch leaves no trace of how often it ran, in PT as here. */
    while (counter != 1)
        counter = counter * 3 + 2 + (argument != NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    (void)argv;
    puts("endless");
    fflush(stdout);
    if (argc > 1)
        for (;;)
            pause();
    pthread_create(&thread, NULL, run, &thread);
    run(NULL);
    return 0;
}
