// SPDX-License-Identifier: MIT
// Fields: the same field of the same type, through any pointer; not other fields.
#include <stdlib.h>
struct queue {
    int size;
    struct {
        int *data;
        int room;
    } ring;
};
static void grow(struct queue *q)
{
    q->ring.room += 8;                               //@in writes q->ring.room
    q->size++;
}
int main(int argc, char **argv)
{
    struct queue *work = malloc(sizeof(*work));      //@in
    struct queue *more = malloc(sizeof(*more));      //@in
    work->size = argc;
    work->ring.room = argc;                          //@in writes work->ring.room
    grow(more);                                      //@in
    free(more);                                      //@in
    (void)argv;
    return 8 / work->ring.room;                      //@fail reads work->ring.room
}
