// SPDX-License-Identifier: MIT
// A field is set on one path only; what malloc left there is used on the other.
#include "../corpus.h"

struct packet {
    int kind;
    int *payload;
};

static struct packet *make(int kind)
{
    struct packet *p;
    void *old = malloc(sizeof(*p));

    memset(old, 0x5a, sizeof(*p));
    free(old);
#ifdef FIXED
    p = calloc(1, sizeof(*p));
#else
    p = malloc(sizeof(*p));                  //@alloc
#endif
    p->kind = kind;                          //@kind
    if (kind > 1)                            //@test
        p->payload = &p->kind;               //@set
    return p;                                //@give
}

int main(void)
{
    int kind = (int)draw(4);                 //@input
    struct packet *p = make(kind);           //@make

#ifdef FIXED
    if (!p->payload)
        return 0;
#endif
    return *p->payload > 9;                  //@use
}
