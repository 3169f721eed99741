/* SPDX-License-Identifier: MIT */
/* Where a ring was full: what was written later is not what came next, though the offsets may go on. Each such cut is
 * shown as a hole of one byte in the stream, as etch's own recorder writes it, so that nothing is decoded across it and
 * the loss is told in its place. */
#ifndef ETCH_DECODER_RECORDING_CUTS_H
#define ETCH_DECODER_RECORDING_CUTS_H

#include "decoder/recording.h"

/* Opens the holes in streams whose offsets go on, as the kernel's do, and moves what lies behind. The loader's `where`
 * must count bytes. False where memory is short. */
bool etch_cuts_open(struct etch_recording *recording);

/* Opens one behind a stream that ends with a cut: an empty piece stands behind it. False where memory is short. */
bool etch_cuts_end(struct etch_recording *recording);

#endif
