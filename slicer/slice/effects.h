/* SPDX-License-Identifier: MIT */
/* The effects of system headers' code on the objects that it gets. Such code makes a C++ program's accesses to a smart
 * pointer, a string or an atomic; the user's source has only a call. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_EFFECTS_H
#define ETCH_SLICER_SLICE_EFFECTS_H

#include "slicer/model/model.h"

/* An access to the target of a parameter. */
struct etch_effect {
    uint32_t parameter;
    int64_t offset; /* from where the parameter points */
    uint32_t size;
    bool write;
    uint32_t insn; /* the instruction that makes the access, here or in a called function */
};

typedef ETCH_ARRAY(struct etch_effect) etch_effects;

/* The effects of a function that a system header defines, and of the functions that it calls. Only accesses at a
 * constant distance from a parameter are known. NULL: the function is the user's own, or memory is short. */
const etch_effects *etch_effects_of(struct etch_model *m, uint32_t function);

#endif
