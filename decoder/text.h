/* SPDX-License-Identifier: MIT */
/* Text that grows, written by hand: printf is the slowest part of a fast decoder. */
#ifndef ETCH_DECODER_TEXT_H
#define ETCH_DECODER_TEXT_H

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
    if (etch_text_reserve(text, n)) {
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

/* Lower-case hexadecimal, without a prefix or leading zeros. */
static inline void etch_text_hex(struct etch_text *text, uint64_t v)
{
    unsigned digits = v ? (67u - (unsigned)__builtin_clzll(v)) / 4u : 1u;

    if (!etch_text_reserve(text, 16))
        return;
    for (unsigned i = digits; i > 0; i--, v >>= 4)
        text->v[text->n + i - 1] = "0123456789abcdef"[v & 15];
    text->n += digits;
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
