/* SPDX-License-Identifier: MIT */
/* Which values of a function are live where its blocks begin. Private to instrument/. */
#ifndef ETCH_SLICER_INSTRUMENT_LIVE_H
#define ETCH_SLICER_INSTRUMENT_LIVE_H

#include "slicer/instrument/model.h"

struct live {
    values all;                  /* parameters, then instructions in their order, also those without a value */
    struct etch_pointers number; /* value -> its index in `all` */
    ETCH_ARRAY(LLVMBasicBlockRef) blocks;
    struct etch_pointers block;     /* block -> its index in `blocks` */
    size_t words;                   /* of a set of values */
    uint64_t *in, *use, *def, *out; /* sets by block; `in` is the result */
};

/* False if memory is short. */
bool etch_live_open(struct live *live, LLVMValueRef function);
void etch_live_release(struct live *live);

/* Is the value with this number used at or after the begin of the block, and defined before? PHIs of the block are
 * defined in it. */
bool etch_live_in(const struct live *live, uint32_t block, uint32_t value);

#endif
