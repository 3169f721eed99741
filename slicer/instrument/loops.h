/* SPDX-License-Identifier: MIT */
/* The loops of a function. Private to instrument/. */
#ifndef ETCH_SLICER_INSTRUMENT_LOOPS_H
#define ETCH_SLICER_INSTRUMENT_LOOPS_H

#include "slicer/instrument/live.h"

struct loop {
    uint32_t head;  /* block */
    uint32_t depth; /* loops around it */
};

struct loops {
    struct loop *v; /* outer loops first */
    size_t n;
    ETCH_ARRAY(uint32_t) backs; /* pairs: a block that branches back, and the head */
};

/* Loops that a computed goto closes are not among them. False if memory is short. */
bool etch_loops_open(struct loops *loops, const struct live *function);
void etch_loops_release(struct loops *loops);

#endif
