/* SPDX-License-Identifier: MIT */
/* The number of the path so far, as a value of the function. Private to instrument/. */
#ifndef ETCH_SLICER_INSTRUMENT_PATH_COUNT_H
#define ETCH_SLICER_INSTRUMENT_PATH_COUNT_H

#include "slicer/instrument/model.h"

/* Fills `count` of the nodes. False if memory is short. */
bool etch_count_paths(struct emitter *emitter, struct flow_graph *graph);

/* The count at the end of an edge; built where the builder stands. */
LLVMValueRef etch_count_along(struct emitter *emitter, const struct node *from, const struct edge *edge);

#endif
