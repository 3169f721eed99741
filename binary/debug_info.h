/* SPDX-License-Identifier: MIT */
/* Private to binary/: the questions to libdw that all readers of debug information share. */
#ifndef ETCH_BINARY_DEBUG_INFO_H
#define ETCH_BINARY_DEBUG_INFO_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* The next compilation unit; `*cursor` begins as NULL. False: there are no more. */
bool etch_debug_next_unit(Dwarf *dwarf, Dwarf_CU **cursor, Dwarf_Die *unit);

/* Puts the unit of the .dwo file in place of its skeleton, which has line rows and ranges, but no entries. A unit that
 * is not split, or whose .dwo file cannot be found, stays as it is. */
void etch_debug_whole_unit(Dwarf_Die *unit);

/* A number that an entry itself has; 0: it has none, or the number is too large. */
uint32_t etch_debug_number(Dwarf_Die *die, unsigned attribute);

/* A text that an entry or its origin has; NULL: none. */
const char *etch_debug_text(Dwarf_Die *die, unsigned attribute);

/* The name by which the linker knows a function: overloads and template instances have one each. NULL: none. */
const char *etch_debug_linkage_name(Dwarf_Die *die);

/* One row of a unit's line table. */
struct etch_debug_line {
    uint64_t address;
    const char *source; /* as the compiler wrote it; NULL: none */
    uint32_t line, column;
    bool statement; /* is_stmt */
    bool end;       /* the first address behind a sequence: no row of its own */
};

/* Row `i`; false where libdw cannot read it. */
bool etch_debug_line_read(Dwarf_Lines *lines, size_t i, struct etch_debug_line *line);

#endif
