/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WIRE 1024

struct stream {
    char bytes[WIRE];
    size_t size, at;
};

struct frame {
    int kind;
    int length;
    const char *body;
    unsigned char sum;
};

struct totals {
    int frames;
    long payload;
    int bad;
};

static unsigned char checksum(const char *body, int length)
{
    unsigned sum = 7;

    for (int i = 0; i < length; i++)
        sum = sum * 3 + (unsigned char)body[i];
    return (unsigned char)sum;
}

static void put_frame(struct stream *s, int kind, const char *body, int length)
{
    s->bytes[s->size++] = (char)kind;
    s->bytes[s->size++] = (char)length; //@put
    memcpy(s->bytes + s->size, body, (size_t)length);
    s->size += (size_t)length;
    s->bytes[s->size++] = (char)checksum(body, length);
}

static int next_byte(struct stream *s)
{
#ifdef FIXED
    return s->at < s->size ? (unsigned char)s->bytes[s->at++] : -1;
#else
    return s->at < s->size ? s->bytes[s->at++] : -1; //@byte
#endif
}

static int next_frame(struct stream *s, struct frame *f)
{
    f->kind = next_byte(s);
    if (f->kind < 0)
        return 0;
    f->length = next_byte(s); //@length
    f->body = s->bytes + s->at;
    if (f->length > 0)
        s->at += (size_t)f->length; //@skip
    f->sum = (unsigned char)next_byte(s); //@sum
    return 1;
}

static void handle(const struct frame *f, struct totals *t)
{
    if (checksum(f->body, f->length) != f->sum) { //@compare
        t->bad++; //@bad
        return;
    }
    t->frames++;
    t->payload += f->length;
}

static void decode(struct stream *s, struct totals *t)
{
    struct frame f;

    while (t->bad == 0 && next_frame(s, &f))
        handle(&f, t);
}

static void encode(struct stream *s, unsigned *seed, int most)
{
    char body[256];

    for (int i = 0; i < 3; i++) {
        int length = rand_r(seed) % most; //@draw

        for (int j = 0; j < length; j++)
            body[j] = (char)('a' + rand_r(seed) % 26);
        put_frame(s, i + 1, body, length);
    }
}

int main(int argc, char **argv)
{
    static struct stream stream;
    struct totals totals = {0};
    struct timespec now;
    unsigned seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)(now.tv_nsec / 1000);
    encode(&stream, &seed, 150);
    decode(&stream, &totals);
    printf("%d frames, %ld bytes, %d bad\n", totals.frames, totals.payload, totals.bad);
    if (totals.bad) //@any
        return 3; //@fail
    return 0;
}
