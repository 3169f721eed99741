/* SPDX-License-Identifier: MIT */
/* The sketch in one or two English sentences: who does what before whom, how it then fails, and how sure that is. */
#ifndef ETCH_SKETCH_RENDER_SENTENCE_H
#define ETCH_SKETCH_RENDER_SENTENCE_H

#include "proto/etch.pb-c.h"

#include <stddef.h>

/* Empty if nothing failed. Returns the size of its first part: what happened, without how sure that is. The words claim
 * no more than the numbers of the best predictor do. */
size_t etch_render_sentence(const Etch__Sketch *sketch, char *text, size_t size);

#endif
