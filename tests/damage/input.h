/* SPDX-License-Identifier: MIT */
/* Several bundles of one program as one run of bytes, as fuzzers want it: the program's path, a line end, and up to
 * INPUT_FILES bundles, each behind its length in four bytes. */
#ifndef ETCH_TESTS_DAMAGE_INPUT_H
#define ETCH_TESTS_DAMAGE_INPUT_H

#include "tests/damage/damage.h"

#define INPUT_FILES 8u

struct input_file {
    const uint8_t *bytes;
    size_t size;
};

/* Files point into the bytes that it was split from. */
struct input {
    char program[4096];
    struct input_file files[INPUT_FILES];
    size_t n;
};

/* False where this is no input at all. */
bool input_split(struct input *input, const uint8_t *data, size_t size);

/* Damages one bundle of the input at `data`, in place. Returns the new size. */
size_t input_damage(struct damage *damage, uint8_t *data, size_t size, size_t max);

/* The same with each of its bundles; `*damaged` counts them. */
size_t input_damage_all(struct damage *damage, uint8_t *data, size_t size, size_t max, size_t *damaged);

/* The input `one` with records of `other`, or with one of its bundles as a further run. Returns the size of what is in
 * `out`; 0: nothing. */
size_t input_cross(struct damage *damage, const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
                   uint8_t *out, size_t max);

#endif
