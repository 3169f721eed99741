/* SPDX-License-Identifier: MIT */
/* The true frames of a stopped thread, from the unwind tables of its code and from the registers and the copy of the
 * stack that the recording holds. */
#ifndef ETCH_DECODER_UNWIND_H
#define ETCH_DECODER_UNWIND_H

#include "binary/symbols.h"
#include "binary/unwind_tables.h"
#include "decoder/recording.h"

#define ETCH_UNWIND_REGISTERS 24u /* of perf's */

/* DWARF's numbers for x86-64, the last the return address's, as perf's. */
extern const uint8_t etch_unwind_perf_register[17];

/* The unwind tables of a recording's code, to be freed. NULL: a file has changed since it ran. */
struct etch_unwind_tables *etch_unwind_open(const struct etch_recording *recording, struct etch_symbols *symbols);

/* Unwinds the failure's threads, and the stack at which its exception was thrown. Replaces frames that were found only
 * by a scan of the stack. Nothing is an error: a stack that cannot be unwound keeps its frames. */
void etch_unwind_failure(struct etch_recording *recording, struct etch_symbols *symbols);

#endif
