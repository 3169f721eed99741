/* SPDX-License-Identifier: MIT */
/* failing HOW: fails in that way, with a second thread beside it. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int zero;
static int *volatile nowhere;

static void *idle(void *unused)
{
    for (;;)
        pause();
    return unused;
}

__attribute__((noinline)) int crash(void)
{
    int value;

    __asm__ volatile(".globl the_load\nthe_load: movl (%1), %0" : "=r"(value) : "r"(nowhere) : "memory");
    return value;
}

__attribute__((noinline)) static int deep(int n)
{
    return n ? deep(n - 1) + zero : crash();
}

static void handled(int number)
{
    printf("handled %d\n", number);
    fflush(stdout);
    _exit(3);
}

static void bus(void)
{
    FILE *file = tmpfile();
    volatile char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);

    zero = *map;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "segv";
    pthread_t thread;
    char *twice = malloc(10);

    pthread_create(&thread, NULL, idle, NULL);
    if (strcmp(how, "segv") == 0)
        return deep(3);
    if (strcmp(how, "assert") == 0)
        assert(zero == 1);
    if (strcmp(how, "free") == 0) {
        free(twice);
        free(twice);
    }
    if (strcmp(how, "fpe") == 0)
        return 1 / zero;
    if (strcmp(how, "ill") == 0)
        __builtin_trap();
    if (strcmp(how, "bus") == 0)
        bus();
    if (strcmp(how, "handled") == 0) {
        signal(SIGSEGV, handled);
        crash();
    }
    if (strcmp(how, "exit") == 0)
        return 7;
    if (strcmp(how, "hang") == 0)
        pause();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    return 0;
}
