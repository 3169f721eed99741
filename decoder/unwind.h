/* SPDX-License-Identifier: MIT */
/* The true frames of a stopped thread, by the unwind tables of the code that it was in: from the registers and the copy
 * of the stack that the recording holds. */
#ifndef ETCH_DECODER_UNWIND_H
#define ETCH_DECODER_UNWIND_H

#include "binary/symbols.h"
#include "decoder/recording.h"

typedef struct Dwfl Dwfl; /* libdwfl.h's */

#define ETCH_UNWIND_REGISTERS 24u /* of perf's */

/* DWARF's numbers for x86-64, the last the return address's, as perf's. */
extern const uint8_t etch_unwind_perf_register[17];

/* The code of a recording with its unwind tables, for dwfl_end(); NULL where a file is not the one that ran any more.
 */
Dwfl *etch_unwind_open(const struct etch_recording *recording, struct etch_symbols *symbols);

/* Replaces the frames of the failure's threads, and of where its exception was thrown, that were only found by looking
 * through the stack, where that can be done. Nothing is an error: what cannot be unwound stays as it was. */
void etch_unwind_failure(struct etch_recording *recording, struct etch_symbols *symbols);

#endif
