/* SPDX-License-Identifier: MIT */
/* Steps that nothing orders, in few words: pairs of the same two threads with the same reason share a sentence. */
#ifndef ETCH_SKETCH_RENDER_UNORDERED_H
#define ETCH_SKETCH_RENDER_UNORDERED_H

#include "proto/etch.pb-c.h"

#include <stddef.h>

/* Calls `show` with each sentence: "T1's steps 1-3 and T2's step 4 are unordered (why)". `row_of` has the row of each
 * step. If there is no memory, each pair has a sentence of its own. */
void etch_render_unordered(const Etch__Sketch *sketch, const size_t *row_of,
                           void (*show)(void *context, const char *sentence), void *context);

#endif
