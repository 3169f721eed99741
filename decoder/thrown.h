/* SPDX-License-Identifier: MIT */
/* Where a C++ exception came from that a recorded program ended with, and what it is, in the words of C++. */
#ifndef ETCH_DECODER_THROWN_H
#define ETCH_DECODER_THROWN_H

#include "binary/symbols.h"
#include "decoder/recording.h"

/* The nearest of `frames` (as ThreadState has them) within the user's own source: neither in a library of the system
 * nor in one of its headers. Returns its number and fills `own`, the user's line; `n` where there is none. */
size_t etch_own_frame(const struct etch_recording *recording, struct etch_symbols *symbols, const uint64_t *frames,
                      size_t n, struct etch_frame *own);

/* As a message; NULL when memory is short. */
Etch__Place *etch_frame_place(const struct etch_frame *frame);

/* After etch_unwind_failure(): gives the failure's exception its type's name, its value and the user's lines where it
 * was thrown. Nothing is an error: what is not known stays so. */
void etch_exception_settle(struct etch_recording *recording, struct etch_symbols *symbols);

/* After etch_exception_settle(), on the recording's failure or a copy: the failure is then where the exception was
 * thrown, in the thread that threw it, with the stack of that time. Where that is not known, where it was first thrown
 * again. Returns whether the failure was changed. */
bool etch_failure_blame(Etch__Failure *failure);

#endif
