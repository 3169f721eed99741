/* SPDX-License-Identifier: MIT */
/* Private to binary/: the inlined calls in the user's own code, by the addresses of the code that they became. libdw
 * answers each address by a walk through a unit's whole tree, which takes minutes for all places of a C++ program. Here
 * each tree is walked once. */
#ifndef ETCH_BINARY_INLINED_H
#define ETCH_BINARY_INLINED_H

#include "base/array.h"
#include "base/strings.h"
#include "binary/line_table.h"
#include "binary/spans.h"

#include <elfutils/libdw.h>

struct etch_inlined {
    ETCH_ARRAY(struct etch_line_row) calls;    /* file, line and column */
    ETCH_ARRAY(struct etch_span_range) ranges; /* of the calls, by number; empty once the spans are made */
    struct etch_spans spans;
};

/* The number of a unit's source file, by its whole path. */
uint32_t etch_unit_file(struct etch_strings *files, Dwarf_Die *unit, const char *source);

/* Adds the calls of one file, whose addresses get `base` added. False: out of memory. */
bool etch_inlined_read(struct etch_inlined *in, struct etch_strings *files, Dwarf *dwarf, uint64_t base);

/* After the last file. False: out of memory. */
bool etch_inlined_finish(struct etch_inlined *in);

/* The innermost inlined call in the user's own code around an address; NULL for none. */
const struct etch_line_row *etch_inlined_find(const struct etch_inlined *in, uint64_t address);

void etch_inlined_release(struct etch_inlined *in);

#endif
