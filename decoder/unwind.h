/* SPDX-License-Identifier: MIT */
/* The true frames of a stopped thread, by the unwind tables of the code that it was in: from the registers and the copy
 * of the stack that the recording holds. */
#ifndef ETCH_DECODER_UNWIND_H
#define ETCH_DECODER_UNWIND_H

#include "decoder/recording.h"
#include "decoder/symbols.h"

/* Replaces the frames of the failure's threads that were only found by looking through the stack, where that can be
 * done. Nothing is an error: what cannot be unwound stays as it was. */
void etch_unwind_failure(struct etch_recording *recording, struct etch_symbols *symbols);

#endif
