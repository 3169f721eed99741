// SPDX-License-Identifier: MIT
// An offset from the input is taken for an index; a negative one leads far in front of the table.
#include "../corpus.h"

static int table[16];

struct request {
    int slot;
    int weight;
};

static void parse(struct request *r, const char *text)
{
    r->slot = atoi(text);                           //@slot
    r->weight = 3;
}

static int lookup(const struct request *r)
{
    int sum = 0;

#ifdef FIXED
    if (r->slot < 0)
        return 0;
#endif
    for (int i = 0; i < r->weight; i++)
        sum += table[(long)r->slot * 4096 + i];     //@use
    return sum;
}

int main(void)
{
    static const char *const inputs[] = {"0", "-300000", "0", "-700000"};
    struct request *r = calloc(1, sizeof(*r));

    parse(r, inputs[draw(4)]);                      //@input
    return lookup(r) > 9;
}
