/* SPDX-License-Identifier: MIT */
/* What code of system headers does to the objects that it is given. A C++ program's accesses to a smart pointer, a
 * string or an atomic are made by such code, and the user's source has only a call. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_EFFECTS_H
#define ETCH_SLICER_SLICE_EFFECTS_H

#include "slicer/model/model.h"

/* An access to what a parameter points to. */
struct etch_effect {
    uint32_t parameter;
    int64_t offset; /* from where the parameter points */
    uint32_t size;
    bool write;
    uint32_t insn; /* the instruction that makes the access, here or in a called function */
};

typedef ETCH_ARRAY(struct etch_effect) etch_effects;

/* The effects of a function that a system header defines, with those of the ones that it calls. Only accesses at a
 * constant distance from a parameter are known. NULL: it is the user's own function, or memory is short. */
const etch_effects *etch_effects_of(struct etch_model *m, uint32_t function);

#endif
