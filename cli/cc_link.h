/* SPDX-License-Identifier: MIT */
/* The note about how a program is linked, as an object file that the same link takes. See slicer/link_note.h. */
#ifndef ETCH_CLI_CC_LINK_H
#define ETCH_CLI_CC_LINK_H

#include <limits.h>
#include <stddef.h>

struct etch_cc_link_note {
    char path[PATH_MAX]; /* a temporary object; empty if none could be made: the program is linked without a note */
};

void etch_cc_link_note(struct etch_cc_link_note *note, const char *clang, char *const *words, size_t n);

void etch_cc_link_note_remove(struct etch_cc_link_note *note);

#endif
