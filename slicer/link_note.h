/* SPDX-License-Identifier: MIT */
/* The link command of a program. etch cc puts it into the program, in a section that is not loaded, so that the link
 * can be repeated with other objects. */
#ifndef ETCH_SLICER_LINK_NOTE_H
#define ETCH_SLICER_LINK_NOTE_H

#include "base/array.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define ETCH_LINK_SECTION ".etchlink"

struct etch_link_note {
    const char *folder;             /* where the command ran */
    ETCH_ARRAY(const char *) words; /* the compiler and its arguments; they point into the program's bytes */
};

/* An object file that holds the note; free() the bytes. NULL if memory is short. */
uint8_t *etch_link_note_object(const char *folder, const char *const *words, size_t n, size_t *size);

/* Reads the note of a program. If there are several, the last note counts: it is of the final link. Returns 0, or -1
 * with `err` set if there is no note or it is damaged. */
int etch_link_note_read(struct etch_link_note *note, const uint8_t *elf, size_t size, struct etch_error *err);

void etch_link_note_release(struct etch_link_note *note);

#endif
