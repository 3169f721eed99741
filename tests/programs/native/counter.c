/* SPDX-License-Identifier: MIT */
/* counter [N]: two threads count to 2 N under a lock, a third that is made later adds one; then a field on the heap. Each
 * stays on its CPU: on a virtual machine a debug trap can get lost where a thread moves, and these are counted. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct box {
    long before;
    long field;
};

struct thing {
    int value;
    struct {
        char first;
        short small;
    } inner;
};

long counter;
struct thing things[4];
int a, b, c, d, e;
static int rounds = 500;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void stay(unsigned cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

static void *count(void *which)
{
    stay(which ? 1 : 0);
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return which;
}

static void *later(void *unused)
{
    __asm__ volatile("lock incq %0" : "+m"(counter)); /* the value is in no register */
    return unused;
}

__attribute__((noinline)) void fill(struct box *box, long value)
{
    __asm__ volatile(".globl the_site\nthe_site: movq %1, 8(%0)" : : "r"(box), "r"(value) : "memory");
}

static void *fill_later(void *box)
{
    fill(box, 40);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t two[2], one;
    struct box *box = calloc(1, sizeof(*box));

    if (argc > 1)
        rounds = atoi(argv[1]);
    stay(0);
    for (int i = 0; i < 2; i++)
        pthread_create(&two[i], NULL, count, i ? &two[i] : NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(two[i], NULL);
    pthread_create(&one, NULL, later, NULL);
    pthread_join(one, NULL);
    a = 1, b = 2, c = 3, d = 4, e = 5;
    things[2].value = 22;
    things[1].inner.small = 7;
    for (long i = 10; i < 30; i += 10)
        fill(box, i);
    pthread_create(&one, NULL, fill_later, box);
    pthread_join(one, NULL);
    printf("%ld %ld\n", counter, box->field);
    return 0;
}
