/* SPDX-License-Identifier: MIT */ /*
 * Packs a series of sensor readings as deltas and unpacks it again.
 *
 * Stream:  first reading, 4 bytes; then for every further reading
 *     -127 .. 127      one byte
 *     0x80 + 2 bytes   a larger step
 *     0x81 + 4 bytes   an even larger one (0x81 is -127: see put_delta)
 * At the end of each frame comes a 4 byte checksum of its readings.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FRAME   64
#define FRAMES  40

#define TAG_WORD ((int8_t)-128)
#define TAG_LONG ((int8_t)-127)

struct stream {
    uint8_t *buf;
    size_t len, cap, pos;
};

static uint32_t rng_state;

static uint32_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 17;
    rng_state ^= rng_state << 5;
    return rng_state;
}

static void put_bytes(struct stream *s, const void *p, size_t n)
{
    if (s->len + n > s->cap) {
        s->cap = (s->len + n) * 2;
        s->buf = realloc(s->buf, s->cap);
        if (!s->buf)
            exit(9);
    }
    memcpy(s->buf + s->len, p, n);
    s->len += n;
}

static int get_bytes(struct stream *s, void *p, size_t n)
{
    if (s->len - s->pos < n)
        return -1;
    memcpy(p, s->buf + s->pos, n);
    s->pos += n;
    return 0;
}

static uint32_t frame_sum(const int32_t *v, int n)
{
    uint32_t a = 1, b = 0;

    for (int i = 0; i < n; i++) {
        a = (a + (uint32_t)v[i]) % 65521u;
        b = (b + a) % 65521u;
    }
    return b << 16 | a;
}

static void put_delta(struct stream *s, int32_t d)
{
    int32_t mag = d < 0 ? -d : d;

    if (mag < 127) {
        int8_t b = (int8_t)d;
        put_bytes(s, &b, 1);
#ifdef FIXED
    } else if (mag <= INT16_MAX) {
#else
    } else if (mag <= UINT16_MAX) {
#endif
        int8_t tag = TAG_WORD;
        int16_t w = (int16_t)d;
        put_bytes(s, &tag, 1);
        put_bytes(s, &w, 2);
    } else {
        int8_t tag = TAG_LONG;
        put_bytes(s, &tag, 1);
        put_bytes(s, &d, 4);
    }
}

static int get_delta(struct stream *s, int32_t *d)
{
    int8_t b;
    int16_t w;

    if (get_bytes(s, &b, 1))
        return -1;
    if (b == TAG_LONG)
        return get_bytes(s, d, 4);
    if (b == TAG_WORD) {
        if (get_bytes(s, &w, 2))
            return -1;
        *d = w;
        return 0;
    }
    *d = b;
    return 0;
}

static void encode_frame(struct stream *s, const int32_t *v, int n)
{
    uint32_t sum = frame_sum(v, n);

    put_bytes(s, &v[0], 4);
    for (int i = 1; i < n; i++)
        put_delta(s, v[i] - v[i - 1]);
    put_bytes(s, &sum, 4);
}

static int decode_frame(struct stream *s, int32_t *v, int n)
{
    uint32_t sum;
    int32_t d;

    if (get_bytes(s, &v[0], 4))
        return -1;
    for (int i = 1; i < n; i++) {
        if (get_delta(s, &d))
            return -1;
        v[i] = v[i - 1] + d;
    }
    if (get_bytes(s, &sum, 4))
        return -1;
    return sum == frame_sum(v, n) ? 0 : 1;
}

/* A slow drift, some noise, and now and then the probe is swapped. */
static void sample(int32_t *v, int n, int32_t *level)
{
    for (int i = 0; i < n; i++) {
        *level += (int32_t)(rng() % 41) - 20;
        if (rng() % 50 == 0)
            *level += (int32_t)(rng() % 3000) - 1500;
        if (rng() % 1000 == 0)
            *level = (int32_t)(rng() % 52000) - 26000;
        v[i] = *level;
    }
}

int main(int argc, char **argv)
{
    struct stream s = { 0 };
    int32_t v[FRAME], level = 500;
    int bad = 0;

    rng_state = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) * 2654435761u + 1
                         : (uint32_t)time(NULL) ^ (uint32_t)getpid() * 40503u;
    if (rng_state == 0)
        rng_state = 1;
    for (int f = 0; f < FRAMES; f++) {
        sample(v, FRAME, &level);
        encode_frame(&s, v, FRAME);
    }
    for (int f = 0; f < FRAMES; f++)
        if (decode_frame(&s, v, FRAME) != 0)
            bad++;
    printf("%d readings in %zu bytes, %d bad frames\n", FRAME * FRAMES, s.len, bad);
    free(s.buf);
    return bad ? 2 : 0;
}
