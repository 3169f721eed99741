/* SPDX-License-Identifier: MIT */
/* Text that somebody else wrote, as it may go to a terminal: names of files and functions, arguments, messages, source
 * lines. A character that could control a terminal, or falsify the look of a line, becomes a question mark: controls
 * (C0, DEL, C1), bytes that are no UTF-8, characters that change the direction of writing, characters without width. */
#ifndef ETCH_BASE_PRINTABLE_H
#define ETCH_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ETCH_RUNE_INVALID 0xfffdu

/* Reads one character of UTF-8 and moves `text` behind it; ETCH_RUNE_INVALID, and one byte further, where there is
 * none. Stands still at the end of the string. */
uint32_t etch_utf8_next(const char **text);

/* Does the character have no width, or change the order of its neighbours? */
bool etch_rune_is_invisible(uint32_t rune);

/* Replaces characters that must not be printed. The text does not grow. Returns `text`. */
char *etch_printable(char *text);

/* A printable copy of `text` in `copy`, cut to fit. NULL is the empty text. Returns `copy`. */
char *etch_printable_copy(char *copy, size_t size, const char *text);

/* The same as an argument of printf: the copy lasts as long as the block it is written in. */
#define etch_shown(text) etch_printable_copy((char[1024]){0}, 1024, (text))

/* Prints the text, all of it, of which the last is the form for text without an end mark. */
void etch_print(FILE *out, const char *text);
void etch_print_bytes(FILE *out, const char *text, size_t size);

#endif
