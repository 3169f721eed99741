/* SPDX-License-Identifier: MIT */
/* Sketches made by hand, for the renderers' tests. */
#ifndef ETCH_TESTS_SKETCH_SAMPLES_H
#define ETCH_TESTS_SKETCH_SAMPLES_H

#include "proto/etch.pb-c.h"

extern const char *const sample_names[]; /* ends with NULL */

/* To be freed with etch__sketch__free_unpacked(); NULL where there is no such sample. */
Etch__Sketch *sample_make(const char *name);

#endif
