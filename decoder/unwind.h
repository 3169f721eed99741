/* SPDX-License-Identifier: MIT */
/* The true frames of a stopped thread, by the unwind tables of the code that it was in: from the registers and the copy
 * of the stack that the recording holds. */
#ifndef ETCH_DECODER_UNWIND_H
#define ETCH_DECODER_UNWIND_H

#include "binary/symbols.h"
#include "binary/unwind_tables.h"
#include "decoder/recording.h"

#define ETCH_UNWIND_REGISTERS 24u /* of perf's */

/* DWARF's numbers for x86-64, the last the return address's, as perf's. */
extern const uint8_t etch_unwind_perf_register[17];

/* The unwind tables of a recording's code, to be freed; NULL: a file is not the one that ran any more. */
struct etch_unwind_tables *etch_unwind_open(const struct etch_recording *recording, struct etch_symbols *symbols);

/* Replaces the frames of the failure's threads, and of where its exception was thrown, that were only found by looking
 * through the stack, where that can be done. Nothing is an error: what cannot be unwound stays as it was. */
void etch_unwind_failure(struct etch_recording *recording, struct etch_symbols *symbols);

#endif
