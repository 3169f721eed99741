/* SPDX-License-Identifier: MIT */
/* The calls in the user's own code that were inlined, by the addresses of what they became. libdw finds what holds one
 * address by walking a unit's whole tree, which takes minutes for all places of a C++ program; here each tree is walked
 * once. Private to slicer/. */
#ifndef ETCH_SLICER_MODEL_INLINED_H
#define ETCH_SLICER_MODEL_INLINED_H

#include "base/array.h"
#include "slicer/model/line_table.h"
#include "slicer/model/nested.h"
#include "slicer/model/strings.h"

#include <elfutils/libdw.h>

struct etch_inlined {
    ETCH_ARRAY(struct etch_line_row) calls; /* file, line and column */
    struct etch_nested ranges;              /* their numbers */
};

/* The number of a unit's source file, by its whole path. */
uint32_t etch_unit_file(struct etch_strings *files, Dwarf_Die *unit, const char *source);

/* Adds the calls of one file, whose addresses get `base` added. False: out of memory. */
bool etch_inlined_read(struct etch_inlined *in, struct etch_strings *files, Dwarf *dwarf, uint64_t base);

/* After the last file. False: out of memory. */
bool etch_inlined_finish(struct etch_inlined *in);

/* The innermost call in the user's own code that the code at an address was inlined for; NULL for none. */
const struct etch_line_row *etch_inlined_find(const struct etch_inlined *in, uint64_t address);

void etch_inlined_release(struct etch_inlined *in);

#endif
