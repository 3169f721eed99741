/* SPDX-License-Identifier: MIT */
/* Text that grows, written by hand: printf is the slowest part of a fast decoder. */
#ifndef ETCH_BASE_TEXT_H
#define ETCH_BASE_TEXT_H

#include "base/array.h"

#include <stdint.h>
#include <string.h>

struct etch_text {
    char *v;
    size_t n, capacity;
    bool failed; /* memory ran out: it is not whole */
};

/* Room for `more` bytes. False where memory is short. */
static inline bool etch_text_reserve(struct etch_text *text, size_t more)
{
    if (text->capacity - text->n >= more)
        return true;
    if (!etch_array_grow((void **)&text->v, &text->capacity, 1, text->n + more))
        text->failed = true;
    return !text->failed;
}

static inline void etch_text_bytes(struct etch_text *text, const char *s, size_t n)
{
    if (n > 0 && etch_text_reserve(text, n)) {
        memcpy(text->v + text->n, s, n);
        text->n += n;
    }
}

static inline void etch_text_string(struct etch_text *text, const char *s)
{
    etch_text_bytes(text, s, strlen(s));
}

static inline void etch_text_char(struct etch_text *text, char c)
{
    if (etch_text_reserve(text, 1))
        text->v[text->n++] = c;
}

/* Eight hexadecimal digits of `v`, the highest in the lowest byte. */
static inline uint64_t etch_text_digits(uint32_t v)
{
    uint64_t x = v, letters;

    x = (x << 16 | x) & 0x0000ffff0000ffffu;
    x = (x << 8 | x) & 0x00ff00ff00ff00ffu;
    x = (x << 4 | x) & 0x0f0f0f0f0f0f0f0fu;
    letters = (x + 0x0606060606060606u) >> 4 & 0x0101010101010101u; /* where a nibble is above nine */
    return __builtin_bswap64(x + 0x3030303030303030u + letters * ('a' - '0' - 10));
}

#define ETCH_TEXT_HEX_ROOM 32u /* what etch_text_put_hex() may write to, more than the digits */

/* Lower-case hexadecimal, without a prefix or leading zeros, at `p`. Returns where it ends. */
static inline char *etch_text_put_hex(char *p, uint64_t v)
{
    unsigned digits = v ? (67u - (unsigned)__builtin_clzll(v)) / 4u : 1u;
    uint64_t high, low;

    v <<= 4 * (16 - digits); /* so that the text needs no moving: what follows the digits is written over */
    high = etch_text_digits((uint32_t)(v >> 32));
    low = etch_text_digits((uint32_t)v);
    memcpy(p, &high, 8);
    memcpy(p + 8, &low, 8);
    return p + digits;
}

static inline void etch_text_hex(struct etch_text *text, uint64_t v)
{
    if (etch_text_reserve(text, ETCH_TEXT_HEX_ROOM))
        text->n = (size_t)(etch_text_put_hex(text->v + text->n, v) - text->v);
}

static inline void etch_text_decimal(struct etch_text *text, uint64_t v)
{
    char digits[20];
    size_t n = sizeof(digits);

    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    etch_text_bytes(text, digits + n, sizeof(digits) - n);
}

#endif
