/* SPDX-License-Identifier: MIT */
/* Whatever reads bundles, on bundles that are in memory: as etch info, etch decode and etch sketch do it, one process
 * for any number of them. */
#ifndef ETCH_TESTS_DAMAGE_READERS_H
#define ETCH_TESTS_DAMAGE_READERS_H

#include "tests/damage/input.h"

struct readers;

/* What came of it. */
struct readers_result {
    uint64_t taken, refused;           /* bundles, by the sketch */
    uint64_t sketches, without_sketch; /* inputs */
    uint64_t steps;                    /* decoded */
    char why[512];                     /* of the last refusal, in words */
};

struct readers *readers_new(void);
void readers_free(struct readers *readers);

/* Goes through all readers with these bundles. An answer that is none (a refusal without words, a
 * picture that is empty) ends the process by abort(). `result` is added to. */
void readers_take(struct readers *readers, const struct input *input, struct readers_result *result);

#endif
