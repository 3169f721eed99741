/* SPDX-License-Identifier: MIT */
/* Contradictory evidence of the recordings, as part of a sketch. */
#ifndef ETCH_SKETCH_EXPLAIN_CONFLICT_H
#define ETCH_SKETCH_EXPLAIN_CONFLICT_H

#include "sketch/explain/layout.h"

/* Adds each contradiction of the shown run to the sketch. */
void etch_conflict_fill(struct composition *c);

/* The number of compared runs that contain a contradiction, without the shown run. */
size_t etch_conflict_count_others(const struct composition *c);

#endif
