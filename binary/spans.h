/* SPDX-License-Identifier: MIT */
/* Nested address ranges made flat: a sorted array in which a binary search finds the innermost range of an address. */
#ifndef ETCH_BINARY_SPANS_H
#define ETCH_BINARY_SPANS_H

#include "base/array.h"

#include <stdint.h>

#define ETCH_SPAN_NONE UINT32_MAX

/* A range to be entered; of two that begin together the one with the higher rank lies inside. */
struct etch_span_range {
    uint64_t start, end;
    uint32_t rank;
    uint32_t value;
};

/* From `start` to the next span's start: `value`, or ETCH_SPAN_NONE. */
struct etch_span {
    uint64_t start;
    uint32_t value;
};

struct etch_spans {
    ETCH_ARRAY(struct etch_span) spans;
};

/* Sorts `ranges` in place; a range that reaches out of the one around it is cut there. False when memory is short. */
bool etch_spans_make(struct etch_spans *spans, struct etch_span_range *ranges, size_t n);

/* The innermost value at `address` and, in `until`, where it changes next (UINT64_MAX: never). */
uint32_t etch_spans_find(const struct etch_spans *spans, uint64_t address, uint64_t *until);

void etch_spans_release(struct etch_spans *spans);

#endif
