/* SPDX-License-Identifier: MIT */
/* Completes the watched accesses of a recording made by debug registers. Accesses of vpt have these fields from the
 * start: the instruction itself, read or write, the value if known, the caller if the instruction is in a library. */
#ifndef ETCH_DECODER_ACCESSES_H
#define ETCH_DECODER_ACCESSES_H

#include "binary/symbols.h"
#include "decoder/code.h"
#include "decoder/recording.h"

/* Works on recording->accesses in place. Accesses that need nothing are left alone. Returns 0, or -1 with `err` set. */
int etch_accesses_settle(struct etch_recording *recording, const struct etch_code *code, struct etch_symbols *symbols,
                         struct etch_error *err);

/* The same for accesses and synchronisations of the lab, which have values, but not their instruction and caller. */
void etch_accesses_settle_lab(struct etch_recording *recording, const struct etch_code *code,
                              struct etch_symbols *symbols);

/* An emulated watch reads the location back after the access. If a write of another thread may have come between the
 * two, the value read back may be the other thread's: such values become unknown. Returns 0, or -1 with `err` set. */
int etch_accesses_doubt(struct etch_recording *recording, struct etch_error *err);

#endif
