/* SPDX-License-Identifier: MIT */
/* See printable.h. */
#include "base/printable.h"

#include <string.h>

uint32_t etch_utf8_next(const char **text)
{
    const unsigned char *s = (const unsigned char *)*text;
    unsigned length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    uint32_t rune = length == 1 ? s[0] : length ? s[0] & (0x7fu >> length) : 0;

    if (!s[0])
        return 0;
    for (unsigned i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            length = 0;
            break;
        }
        rune = rune << 6 | (s[i] & 0x3fu);
    }
    if (!length || (length == 3 && rune < 0x800) || (length == 4 && rune < 0x10000) || rune > 0x10ffff ||
        (rune >= 0xd800 && rune < 0xe000)) {
        (*text)++;
        return ETCH_RUNE_INVALID;
    }
    *text += length;
    return rune;
}

bool etch_rune_is_invisible(uint32_t rune)
{
    return rune == 0xad || rune == 0x61c || rune == 0x180e || (rune >= 0x200b && rune <= 0x200f) ||
           (rune >= 0x2028 && rune <= 0x202e) || (rune >= 0x2060 && rune <= 0x206f) || rune == 0xfeff ||
           (rune >= 0xfff9 && rune <= 0xfffb) || (rune >= 0xe0000 && rune <= 0xe0fff);
}

static bool is_printable(uint32_t rune)
{
    return rune >= 0x20 && (rune < 0x7f || rune >= 0xa0) && rune != ETCH_RUNE_INVALID && !etch_rune_is_invisible(rune);
}

char *etch_printable(char *text)
{
    const char *from = text;
    char *to = text;

    while (*from) {
        const char *start = from;
        uint32_t rune = etch_utf8_next(&from);
        size_t n = (size_t)(from - start);

        if (is_printable(rune)) {
            memmove(to, start, n);
            to += n;
        } else {
            *to++ = '?';
        }
    }
    *to = '\0';
    return text;
}

char *etch_printable_copy(char *copy, size_t size, const char *text)
{
    size_t n;

    text = text ? text : "";
    n = strnlen(text, size);
    if (n < size) {
        memcpy(copy, text, n);
        copy[n] = '\0';
        return etch_printable(copy);
    }
    memcpy(copy, text, size - 4);
    memcpy(copy + size - 4, "...", 4);
    return etch_printable(copy);
}

void etch_print(FILE *out, const char *text)
{
    while (*text) {
        const char *start = text;
        uint32_t rune = etch_utf8_next(&text);

        if (rune < 0x80)
            putc_unlocked(is_printable(rune) ? (int)rune : '?', out);
        else if (is_printable(rune))
            fwrite(start, 1, (size_t)(text - start), out);
        else
            putc_unlocked('?', out);
    }
}

void etch_print_bytes(FILE *out, const char *text, size_t size)
{
    char piece[512];

    while (size) {
        size_t n = size < sizeof(piece) - 1 ? size : sizeof(piece) - 1;

        for (size_t back = 0; n < size && back < 3 && (text[n] & 0xc0) == 0x80; back++)
            n--; /* not through a character */
        memcpy(piece, text, n);
        piece[n] = '\0';
        for (size_t i = 0; i < n; i++)
            piece[i] = piece[i] ? piece[i] : '\x01';
        etch_print(out, piece);
        text += n;
        size -= n;
    }
}
