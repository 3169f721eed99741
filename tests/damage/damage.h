/* SPDX-License-Identifier: MIT */
/* Damage to a bundle as an attacker, a bug or a bad disk could make it: records dropped, doubled, swapped, taken from
 * another bundle; numbers, addresses, enums and strings changed, lists cut, messages left out; at random, the same for
 * the same seed. */
#ifndef ETCH_TESTS_DAMAGE_DAMAGE_H
#define ETCH_TESTS_DAMAGE_DAMAGE_H

#include "tests/damage/records.h"

struct damage {
    uint64_t random; /* the state of the random numbers: begins with the seed */
};

/* A number below `n`, which is not 0. */
uint64_t damage_below(struct damage *damage, uint64_t n);

/* Damages the records once. `other` is where records may be taken from, and may be the same. False when memory is
 * short. */
bool damage_records(struct damage *damage, struct records *records, const struct records *other);

/* Damages the bytes of a file of `*size` bytes: changes some, or cuts it. */
void damage_bytes(struct damage *damage, uint8_t *bytes, size_t *size);

#endif
