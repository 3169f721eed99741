/* SPDX-License-Identifier: MIT */
/* Ranges of addresses that lie within each other, as inlined calls do, and the innermost one at an address. Made flat
 * once: a large C++ program is asked for tens of thousands of addresses. Private to slicer/. */
#ifndef ETCH_SLICER_MODEL_NESTED_H
#define ETCH_SLICER_MODEL_NESTED_H

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>

struct etch_nested_range {
    uint64_t start, end;
    uint32_t depth; /* the deeper one is the inner one */
    uint32_t value;
};

struct etch_nested {
    ETCH_ARRAY(struct etch_nested_range) ranges; /* as they were added; empty once they are flat */
    ETCH_ARRAY(struct etch_nested_range) flat;   /* by address, none overlaps another */
};

/* An empty range is left out. False: out of memory. */
bool etch_nested_add(struct etch_nested *n, uint64_t start, uint64_t end, uint32_t depth, uint32_t value);

/* After the last one was added. False: out of memory. */
bool etch_nested_flatten(struct etch_nested *n);

/* The value of the innermost range that holds an address; false where there is none. */
bool etch_nested_find(const struct etch_nested *n, uint64_t address, uint32_t *value);

void etch_nested_release(struct etch_nested *n);

#endif
