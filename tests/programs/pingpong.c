/* SPDX-License-Identifier: MIT */
/* Two threads on one CPU that hand a byte to and fro, as many switches as there can be, until they are killed. A dot for
 * every hundred rounds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static int there[2], back[2];

static void *answer(void *argument)
{
    char byte;

    while (read(there[0], &byte, 1) == 1)
        if (write(back[1], &byte, 1) != 1)
            break;
    return argument;
}

int main(void)
{
    pthread_t thread;
    cpu_set_t one;
    char byte = '.';

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof(one), &one);
    if (pipe(there) < 0 || pipe(back) < 0 || pthread_create(&thread, NULL, answer, NULL) != 0)
        return 1;
    for (unsigned i = 1;; i++) {
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 2;
        if (i % 100 == 0 && write(1, &byte, 1) != 1)
            return 3;
    }
}
