/* SPDX-License-Identifier: MIT */
/* Signals in several threads at once, into every sort of code: handlers that are interrupted themselves, that call and
 * tail-call each other, string instructions, faults in between. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic long hits, faults;
static _Atomic int done;
static __thread char *page;

static void second(int n, siginfo_t *info, void *context)
{
    (void)n, (void)info, (void)context;
    hits++;
}

static void first(int n, siginfo_t *info, void *context)
{
    hits++;
    second(n, info, context); /* a tail call */
}

static void on_fault(int n, siginfo_t *info, void *context)
{
    (void)n, (void)context;
    mprotect((void *)((unsigned long)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
    faults++;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void *work(void *argument)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog";
    char a[5000], b[5000];
    long sum = 0;

    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 60; round++) {
        int v[200];
        size_t n = sizeof(a);
        void *to = a;

        for (int i = 0; i < 200; i++)
            v[i] = (i * 7919 + round) % 211;
        qsort(v, 200, sizeof(v[0]), compare);
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(round) : "memory");
        memmove(b, a, sizeof(a));
        mprotect(page, 4096, PROT_NONE);
        page[round]++;
        sum += v[100] + b[77] + (long)strlen(text) + syscall(SYS_getpid) * 0;
    }
    return (void *)(sum + (argument != NULL) * 0);
}

static void handle(int n, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction act;

    memset(&act, 0, sizeof(act));
    act.sa_sigaction = handler;
    act.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
    sigaction(n, &act, NULL);
}

static void *disturb(void *argument)
{
    pthread_t *threads = argument;

    while (!done)
        for (int i = 0; i < 4 && !done; i++) {
            pthread_kill(threads[i], i % 2 ? SIGUSR1 : SIGUSR2);
            pthread_kill(threads[i], i % 2 ? SIGUSR2 : SIGUSR1);
            usleep(100);
        }
    return NULL;
}

int main(void)
{
    pthread_t threads[4], disturber;
    long sum = 0;

    handle(SIGUSR1, first);
    handle(SIGUSR2, second);
    handle(SIGSEGV, on_fault);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, &threads[i]);
    pthread_create(&disturber, NULL, disturb, threads);
    usleep(300000);
    done = 1;
    pthread_join(disturber, NULL);
    for (int i = 0; i < 4; i++) {
        void *result;

        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("storm %ld %ld\n", sum, (long)faults);
    return 0;
}
