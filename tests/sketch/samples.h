/* SPDX-License-Identifier: MIT */
/* Sketches made by hand, for the renderers' tests. */
#ifndef ETCH_TESTS_SKETCH_SAMPLES_H
#define ETCH_TESTS_SKETCH_SAMPLES_H

#include "proto/etch.pb-c.h"

extern const char *const sample_names[]; /* ends with NULL */

/* To be freed with etch__sketch__free_unpacked(); NULL where there is no such sample. */
Etch__Sketch *sample_make(const char *name);

/* In samples_many.c: a value with a chain; so many threads with long names; 10,000 steps. */
Etch__Sketch *sample_session_cache(void);
Etch__Sketch *sample_threads(uint32_t n);
Etch__Sketch *sample_long(void);

#endif
