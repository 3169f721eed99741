// SPDX-License-Identifier: MIT
// A decoder that meets a bad checksum frees the payload; its caller, told of the error, frees it again.
#include "../corpus.h"

struct frame {
    unsigned kind;
    unsigned length;
    unsigned char *payload;
};
static unsigned received, dropped;

static unsigned checksum(const unsigned char *data, unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += data[i];
    return sum & 0xff;
}

static int decode(struct frame *f, const char *wire, unsigned n)
{
    if (n < 3)
        return -1; // too short to have a payload
    f->kind = (unsigned char)wire[0];
    f->length = n - 2;
    f->payload = malloc(f->length);                           //@alloc
    memcpy(f->payload, wire + 2, f->length);
    if (checksum(f->payload, f->length) != (unsigned char)wire[1]) { //@bad
        free(f->payload);                                     //@first
#ifdef FIXED
        f->payload = NULL;
#endif
        return -1;                                            //@error
    }
    return 0;
}

static int receive(const char *wire, unsigned n)
{
    struct frame f = {0, 0, NULL};
    int kind;

    if (decode(&f, wire, n) < 0) {                            //@refused
        dropped++;
        free(f.payload);                                      //@again
        return -1;
    }
    received += f.length;
    kind = (int)f.kind;
    free(f.payload);
    return kind;
}

int main(void)
{
    static const struct {
        const char *bytes;
        unsigned n;
    } wires[] = {
        {"A", 1},
        {"B\x88" "hello, world", 14},
        {"C\x26" "abc", 5},
        {"D\xae" "ping", 6},
        {"E\xf7" "longer text, of no use", 24},
        {"F\x61" "a", 3},
        {"G\xc2" "aa", 4},
        {"H\xd3" "garbled", 9},
    };
    int kinds = 0;

    for (int i = 0; i < 3; i++) {
        unsigned which = draw(8);                             //@input
        kinds += receive(wires[which].bytes, wires[which].n); //@receive
    }
    printf("kinds %d, %u bytes received, %u frames dropped\n", kinds, received, dropped);
    return 0;
}
