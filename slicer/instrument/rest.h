/* SPDX-License-Identifier: MIT */
/* Functions that can go dark while they run. Private to instrument/.
 *
 * The rest of a function is a function without a recorder that begins at the head of one of the function's loops. It
 * takes the values that are live there from a record, runs to the end of the function, and returns its result. The
 * recorded code calls the rest when it turned to the next chunk at a back edge and finds that its entry is not lit any
 * more. Its frame stays until the rest returns, so addresses of its variables stay right. */
#ifndef ETCH_SLICER_INSTRUMENT_REST_H
#define ETCH_SLICER_INSTRUMENT_REST_H

#include "slicer/instrument/model.h"

/* True if the function has a loop, and nothing that ties its code to its own frame. */
bool etch_rest_allows(LLVMValueRef function);

/* Makes the rest of `copy`, a copy of `function` that is gone afterwards, under the name of the copy. Notes in
 * `function` which values are live at the heads of its loops: calls of a function that does not exist,
 * etch_rest_point().
 * `*rest` is NULL if there is no rest. False if memory is short. */
bool etch_rest_make(struct emitter *emitter, LLVMValueRef function, LLVMValueRef copy, LLVMValueRef *rest);

/* What was noted in a block; NULL: nothing. Its operands are the number of the head, which is the first word of the
 * record, then the live values, each after its offset in the record. */
LLVMValueRef etch_rest_point(LLVMBasicBlockRef block);

/* Finds the points of the graph's loops. */
void etch_rest_find(struct flow_graph *graph, LLVMValueRef rest);

/* At `end`, a branch back to the head `point`: turns to the next chunk if need be, and leaves for the rest if the
 * function went dark. False if memory is short. */
bool etch_rest_leave(struct emitter *emitter, struct flow_graph *graph, LLVMValueRef end, uint32_t point, uint32_t node,
                     unsigned edge);

/* Where the edge leads back to a loop whose rest can run. */
static inline bool etch_rest_is_at(const struct flow_graph *graph, const struct edge *edge)
{
    return graph->rest && edge->target != NO_NODE && graph->nodes.v[edge->target].point != NULL;
}

/* Removes what was noted. */
void etch_rest_forget(const struct flow_graph *graph);

#endif
