/* SPDX-License-Identifier: MIT */
/* The location of a local variable in its function's frame. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_FRAME_SLOT_H
#define ETCH_SLICER_SLICE_FRAME_SLOT_H

#include "slicer/slice/machine_code.h"

/* The slot of an alloca, found once. The slot is known only if all accesses that show a place show the same: an
 * optimised variable has no one place. NULL when memory is short. */
const struct etch_ir_slot *etch_frame_slot_of(struct etch_model *m, LLVMValueRef variable);

#endif
