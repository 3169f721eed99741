/* SPDX-License-Identifier: MIT */
/* Frames of a copied stack; see frames.h. */
#include "collector/native/frames.h"

#include <string.h>

/* call rel32 is e8 + 4; call r/m64 is ff /2 with a modrm byte, perhaps SIB and displacement: 2 to 7 bytes. */
bool etch_code_ends_in_call(const uint8_t *end, size_t before)
{
    if (before >= 5 && end[-5] == 0xe8)
        return true;
    for (size_t n = 2; n <= 7 && n <= before; n++) {
        uint8_t modrm = end[1 - (ptrdiff_t)n];
        unsigned mod = modrm >> 6, rm = modrm & 7;
        size_t length = 2;

        if (end[-(ptrdiff_t)n] != 0xff || (modrm >> 3 & 7) != 2)
            continue;
        if (mod != 3 && rm == 4) {
            length++;
            if (mod == 0 && n >= 3 && (end[2 - (ptrdiff_t)n] & 7) == 5)
                length += 4;
        }
        length += mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
        if (length == n)
            return true;
    }
    return false;
}

static bool word_at(const struct etch_frames_stack *s, uint64_t address, uint64_t *word)
{
    if (address < s->sp || address - s->sp > s->size || s->size - (address - s->sp) < 8)
        return false;
    memcpy(word, s->bytes + (address - s->sp), 8);
    return true;
}

static size_t walk(const struct etch_frames_stack *s, uint64_t *frames, size_t max)
{
    uint64_t bp = s->bp, next, back;
    size_t n = 0;

    while (n < max && (bp & 7) == 0 && word_at(s, bp, &next) && word_at(s, bp + 8, &back)) {
        if (!s->follows_call(s->context, back))
            break;
        frames[n++] = back;
        if (next <= bp)
            break;
        bp = next;
    }
    return n;
}

static size_t scan(const struct etch_frames_stack *s, uint64_t *frames, size_t max)
{
    uint64_t word;
    size_t n = 0;

    for (uint64_t at = (s->sp + 7) & ~(uint64_t)7; n < max && word_at(s, at, &word); at += 8)
        if (s->follows_call(s->context, word))
            frames[n++] = word;
    return n;
}

size_t etch_frames_find(const struct etch_frames_stack *stack, uint64_t *frames, size_t max, bool *scanned)
{
    size_t n;

    *scanned = false;
    if (!max)
        return 0;
    frames[0] = stack->ip;
    n = walk(stack, frames + 1, max - 1);
    if (n < 2) { /* one frame by accident is more likely than a program of two functions */
        *scanned = true;
        n = scan(stack, frames + 1, max - 1);
    }
    return n + 1;
}
