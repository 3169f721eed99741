/* SPDX-License-Identifier: MIT */
/* Behind etch cc --record-only=@FILE: the functions of a slice. Private to cli/. */
#ifndef ETCH_CLI_CC_SLICE_H
#define ETCH_CLI_CC_SLICE_H

#include "base/array.h"
#include "base/error.h"
#include "slicer/instrument.h"

#include <stdint.h>

struct etch_cc_slice {
    ETCH_ARRAY(struct etch_instrument_scope) scopes;
    ETCH_ARRAY(uint32_t) ids; /* of each scope's statement */
};

/* Adds the functions of the statements in the file's plan, or of the whole slice if the file has no plan. Returns 0, or
 * -1 with `err` set. */
int etch_cc_slice_read(struct etch_cc_slice *slice, const char *path, struct etch_error *err);
void etch_cc_slice_release(struct etch_cc_slice *slice);

#endif
