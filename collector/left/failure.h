/* SPDX-License-Identifier: MIT */
/* The failure that a process noted in its file of rings, as a record of a bundle. */
#ifndef ETCH_COLLECTOR_LEFT_FAILURE_H
#define ETCH_COLLECTOR_LEFT_FAILURE_H

#include "collector/soft/pool_files.h"
#include "proto/etch.pb-c.h"
#include "proto/soft_layout.h"

#include <stdbool.h>

/* A failure under construction; release it with etch_left_failure_release(). */
struct etch_left_failure {
    Etch__Failure record;
    Etch__ThreadState state, *states[1];
    char *message; /* NULL: none */
    uint64_t masked_words;
};

/* Fills in everything. The frames need the code of the program, which is read from its files. `keep` leaves the stack
 * as it is. */
void etch_left_failure_make(struct etch_left_failure *failure, const struct etch_soft_pool *pool,
                            const struct etch_soft_death *death, const struct etch_soft_stand_in *program, bool keep);

void etch_left_failure_release(struct etch_left_failure *failure);

#endif
