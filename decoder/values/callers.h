/* SPDX-License-Identifier: MIT */
/* The caller of an access that a library, a system header's code or the kernel carried out. The caller is the innermost
 * return address in the user's own code. Unwind tables lead there, from the registers and the piece of stack that were
 * sampled with the access. */
#ifndef ETCH_DECODER_VALUES_CALLERS_H
#define ETCH_DECODER_VALUES_CALLERS_H

#include "binary/symbols.h"
#include "decoder/recording.h"

/* Sets the caller of every access that has a sampled stack, and frees that stack. Nothing is guessed: where the tables
 * or the sampled bytes do not lead to the program the caller stays 0. */
void etch_callers_find(struct etch_recording *recording, struct etch_symbols *symbols);

/* The innermost of the return addresses that is in the user's own code, or in a header's if none is. 0: `ip` is in the
 * user's own code itself, or no address is in the program. */
uint64_t etch_callers_choose(const struct etch_recording *recording, struct etch_symbols *symbols, uint64_t ip,
                             const uint64_t *addresses, size_t n);

#endif
