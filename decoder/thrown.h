/* SPDX-License-Identifier: MIT */
/* The C++ exception that ended a recorded program: where it was thrown, its type and value in the words of C++. */
#ifndef ETCH_DECODER_THROWN_H
#define ETCH_DECODER_THROWN_H

#include "binary/symbols.h"
#include "decoder/recording.h"

/* The nearest of `frames` (as ThreadState has them) within the user's own source: neither in a library of the system
 * nor in one of its headers. Returns the frame's index and fills `own`, the user's line; returns `n` if no frame is the
 * user's. */
size_t etch_own_frame(const struct etch_recording *recording, struct etch_symbols *symbols, const uint64_t *frames,
                      size_t n, struct etch_frame *own);

/* The frame as a message; NULL when memory is short. */
Etch__Place *etch_frame_place(const struct etch_frame *frame);

/* After etch_unwind_failure(): gives the failure's exception the name of its type, its value and the user's lines where
 * it was thrown. Nothing is an error: unknown fields stay unknown. */
void etch_exception_settle(struct etch_recording *recording, struct etch_symbols *symbols);

/* After etch_exception_settle(), on the recording's failure or a copy: moves the failure to the place where the
 * exception was thrown, in the thread that threw it, with the stack of that time. If that place is not known, moves the
 * failure to the first rethrow. Returns whether the failure was changed. */
bool etch_failure_blame(Etch__Failure *failure);

#endif
