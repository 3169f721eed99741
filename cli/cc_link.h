/* SPDX-License-Identifier: MIT */
/* The note of how a program was linked, as an input of that very link. See slicer/link_note.h. */
#ifndef ETCH_CLI_CC_LINK_H
#define ETCH_CLI_CC_LINK_H

#include <limits.h>
#include <stddef.h>

struct etch_cc_link_note {
    char path[PATH_MAX]; /* a temporary object; empty: none could be made, and the program is linked without */
};

void etch_cc_link_note(struct etch_cc_link_note *note, const char *clang, char *const *words, size_t n);

void etch_cc_link_note_remove(struct etch_cc_link_note *note);

#endif
