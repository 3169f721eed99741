// SPDX-License-Identifier: MIT
// A width that comes from the input is used as a divisor without a look.
#include "../corpus.h"

struct header {
    int width, height;
};

static void read_header(struct header *h, const char *text)
{
    h->width = atoi(text);                          //@width
    h->height = 480;                                //@height
}

static int aspect(const struct header *h)
{
#ifdef FIXED
    if (h->width == 0)
        return 0;
#endif
    return h->height / h->width;                    //@divide
}

int main(void)
{
    static const char *const inputs[] = {"640", "0", "320", "x"};
    struct header h;

    read_header(&h, inputs[draw(4)]);               //@input
    return aspect(&h) > 1000;
}
