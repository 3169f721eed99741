/* SPDX-License-Identifier: MIT */
/* Keeps secrets where a program has them, and crashes: in its environment, its arguments, a local array, a register, a
 * part of the stack that is free again, another thread's stack, a watched variable. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int *volatile null;
char watched[8];
volatile int counter;
static pthread_barrier_t barrier;

static void __attribute__((noinline)) use(void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static void __attribute__((noinline)) leave(void)
{
    char gone[256];

    snprintf(gone, sizeof(gone), "%s-freed", getenv("LEAK"));
    use(gone);
}

static void __attribute__((noinline)) wait_for_ever(void)
{
    char mine[64];

    snprintf(mine, sizeof(mine), "%s-thread", getenv("LEAK"));
    use(mine);
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
}

static void *other(void *unused)
{
    (void)unused;
    wait_for_ever();
    return NULL;
}

static int __attribute__((noinline)) crash(void)
{
    char local[64];
    unsigned long word;

    snprintf(local, sizeof(local), "%s-local", getenv("LEAK"));
    memcpy(&word, "qregistr", 8);
    use(local);
    __asm__ volatile("" : : "b"(word), "r"(local) : "memory");
    return *null + local[3] + (int)word;
}

/* With a number that could be an address of the program, which lies low in memory. */
static int __attribute__((noinline)) outer(int depth)
{
    volatile unsigned long number = (unsigned long)&leave + 1;
    volatile char pad[64] = "";
    char hole[512]; /* as others left it */

    use(hole);
    counter += number != 0;
    return depth ? outer(depth - 1) + pad[depth] : crash() + pad[0];
}

static void on_signal(int number)
{
    counter = outer(number > 0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int status = 0;

    memcpy(watched, getenv("LEAK"), 7);
    watched[7] = watched[0];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, other, NULL);
    pthread_barrier_wait(&barrier);
    if (argc > 1 && strcmp(argv[1], "signal") == 0) {
        signal(SIGILL, on_signal);
        /* Not behind a call: the address is in the frame of the signal only. */
        __asm__ volatile("nop\n\tud2");
    } else {
        leave();
        status = outer(3);
    }
    return status + 1;
}
