/* SPDX-License-Identifier: MIT */
/* MD5, as RFC 1321 describes it. */
#include "base/md5.h"

#include <math.h>
#include <string.h>

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

/* The RFC's table T: 2^32 times the absolute sine of 1, 2, ... */
static uint32_t sine(unsigned i)
{
    return (uint32_t)(int64_t)floor(fabs(sin(i + 1.0)) * 4294967296.0);
}

static void take_block(uint32_t state[4], const uint8_t *block, const uint32_t table[64])
{
    static const uint8_t turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static const uint8_t step[4] = {1, 5, 3, 7}, first[4] = {0, 1, 5, 0};
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

    for (unsigned i = 0; i < 64; i++) {
        unsigned round = i / 16, at = (i * step[round] + first[round]) % 16 * 4;
        uint32_t word = (uint32_t)block[at] | (uint32_t)block[at + 1] << 8 | (uint32_t)block[at + 2] << 16 |
                        (uint32_t)block[at + 3] << 24;
        uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                         : round == 1 ? (b & d) | (c & ~d)
                         : round == 2 ? b ^ c ^ d
                                      : c ^ (b | ~d);
        uint32_t next = b + rotate(a + mixed + word + table[i], turns[round][i % 4]);

        a = d;
        d = c;
        c = b;
        b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void etch_md5(const void *data, size_t size, uint8_t digest[16])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, table[64];
    const uint8_t *bytes = data;
    uint8_t tail[128] = {0};
    size_t rest = size % 64, padded = rest < 56 ? 64 : 128;

    for (unsigned i = 0; i < 64; i++)
        table[i] = sine(i);
    for (size_t at = 0; at + 64 <= size; at += 64)
        take_block(state, bytes + at, table);
    if (rest)
        memcpy(tail, bytes + size - rest, rest);
    tail[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        tail[padded - 8 + i] = (uint8_t)((uint64_t)size * 8 >> (8 * i));
    for (size_t at = 0; at < padded; at += 64)
        take_block(state, tail + at, table);
    for (unsigned i = 0; i < 16; i++)
        digest[i] = (uint8_t)(state[i / 4] >> (8 * (i % 4)));
}
