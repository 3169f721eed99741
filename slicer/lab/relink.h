/* SPDX-License-Identifier: MIT */
/* Private: the link of a program, repeated with the objects of its lab build. */
#ifndef ETCH_SLICER_LAB_RELINK_H
#define ETCH_SLICER_LAB_RELINK_H

#include "slicer/lab/library.h"
#include "slicer/lab_build.h"

struct etch_lab_relink {
    const struct etch_lab_build *about;
    const struct etch_link_note *note;   /* of the program */
    const etch_lab_libraries *libraries; /* whose code is among the objects */
    char *const *objects;
    size_t n_objects;
};

/* Returns 0, or -1 with `err` set. */
int etch_lab_relink(const struct etch_lab_relink *link, struct etch_error *err);

#endif
