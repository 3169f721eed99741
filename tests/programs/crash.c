/* SPDX-License-Identifier: MIT */
/* Runs along an array until it leaves its page: a memory fault at a loop's first instruction, in the second thread. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

static void *run(void *argument)
{
    char *p = argument;
    long n = 0;

    __asm__ volatile("1: movb (%0), %%al\n   inc %0\n   inc %1\n   jnz 1b\n" : "+r"(p), "+r"(n)::"eax", "memory");
    return (void *)n;
}

int main(void)
{
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;

    munmap(two + 4096, 4096);
    puts("crash");
    fflush(stdout);
    pthread_create(&thread, NULL, run, two);
    pthread_join(thread, NULL);
    return 0;
}
