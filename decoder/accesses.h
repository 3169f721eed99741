/* SPDX-License-Identifier: MIT */
/* The watched accesses of a recording made by debug registers, brought to what vpt's have from the start: the
 * instruction itself, read or write, the value where it can be known, who called where it is a library's. */
#ifndef ETCH_DECODER_ACCESSES_H
#define ETCH_DECODER_ACCESSES_H

#include "binary/symbols.h"
#include "decoder/code.h"
#include "decoder/recording.h"

/* Works on recording->accesses in place; those that need nothing are left alone. Returns 0, or -1 with `err` set. */
int etch_accesses_settle(struct etch_recording *recording, const struct etch_code *code, struct etch_symbols *symbols,
                         struct etch_error *err);

/* An emulated watch reads the location back after the access: where another thread's write may have come between, what
 * was read may be the other's. Such values count as unknown. Returns 0, or -1 with `err` set. */
int etch_accesses_doubt(struct etch_recording *recording, struct etch_error *err);

#endif
