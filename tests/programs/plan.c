// SPDX-License-Identifier: MIT
// Globals, fields through pointers, array elements and stack variables around one failing statement, for the plan.
#include <stdlib.h>
struct queue {
    long pad;
    int *slots;
    int used;
};
int limit = 4;
int counts[8];
static struct queue *queue;
static __attribute__((noinline)) int take(struct queue *q, int i)
{
    int local = q->used + counts[2];
    if (local > limit)
        return q->slots[i] + local;    //@fail
    return 0;
}
int main(int argc, char **argv)
{
    queue = calloc(1, sizeof(*queue));
    queue->used = argc + 9;
    counts[2] = argc;
    if (argv[1])
        queue->slots = malloc(sizeof(int) * 4);
    return take(queue, argc);
}
