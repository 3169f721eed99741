// SPDX-License-Identifier: MIT
// What writes all of an object writes each field of it: memset of a global, a copy of a struct through a pointer.
#include <stdlib.h>
#include <string.h>
struct conf {
    int level;
    int size;
};
static struct conf conf, other;
static struct conf *heap;
int main(int argc, char **argv)
{
    struct conf fresh = {argc, argc - 1};                //@in
    heap = malloc(sizeof(*heap));                        //@in
    memset(&conf, 0, sizeof(conf));                      //@in
    memset(&other, 0, sizeof(other));
    conf.level = 3;
    *heap = fresh;                                       //@in
    (void)argv;
    return 8 / (conf.size + heap->size);                 //@fail reads conf.size, reads heap->size
}
