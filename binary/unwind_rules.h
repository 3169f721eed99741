/* SPDX-License-Identifier: MIT */
/* Private to binary/: the rules of an unwind table for one address, applied to a frame. */
#ifndef ETCH_BINARY_UNWIND_RULES_H
#define ETCH_BINARY_UNWIND_RULES_H

#include "binary/unwind_tables.h"

#include <elfutils/libdw.h>

/* Makes the frame its caller's. False: the rules cannot be followed, or lead to no caller. */
bool etch_unwind_rules_apply(Dwarf_Frame *rules, const struct etch_unwind_memory *memory,
                             struct etch_unwind_frame *frame);

#endif
