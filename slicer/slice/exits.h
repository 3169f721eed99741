/* SPDX-License-Identifier: MIT */
/* The statements that an exit status, or wrong output, may come from. Private to slicer/; others have them as messages, by slice.h. */
#ifndef ETCH_SLICER_SLICE_EXITS_H
#define ETCH_SLICER_SLICE_EXITS_H

#include "slicer/model/model.h"

struct etch_exit {
    uint32_t insn;
    bool origin; /* the statement made the value; else the value only passed through it */
};

struct etch_exits {
    struct etch_exit *v;
    size_t n, capacity;
};

/* All of them for a status, by instruction; none where nothing in the program can give it. Status 0: the statements that
 * write output, or, in a program without such statements, those that give the status. False when memory is short.
 */
bool etch_exits_find(struct etch_model *m, int status, struct etch_exits *exits);

#endif
