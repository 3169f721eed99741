/* SPDX-License-Identifier: MIT */
/* How the threads of a run took turns at one piece of memory: its accesses, those of one statement made one, and the
 * order and atomicity patterns among them. */
#ifndef ETCH_SKETCH_PREDICT_INTERLEAVE_H
#define ETCH_SKETCH_PREDICT_INTERLEAVE_H

#include "sketch/run.h"

/* What one execution of a statement did to an object, as far as no other thread came between. */
struct etch_turn {
    uint32_t thread, place, variable, object;
    uint32_t first, last;       /* accesses of the run */
    uint32_t read_at, write_at; /* the last of each sort; ETCH_NOWHERE: none */
    uint64_t nth;
    uint32_t call; /* which of its thread's; 0: not known */
    bool read, write;
    bool handler; /* a signal handler's: to its thread it is as another one */
};

struct etch_turns {
    ETCH_ARRAY(struct etch_turn) all; /* by object, then in the run's sequence */
    uint64_t fatal;                   /* which execution of the failing statement failed; 0: none is known */
    const struct etch_chances *chances;
};

/* `early`: only up to where the program noticed, which is then what counts as the failure. Returns 0, or -1 when memory
 * is short. */
int etch_turns_make(struct etch_turns *turns, const struct etch_run *run, bool early);

/* A pattern: turns a, b (and c, where it is one of atomicity), which is the number of its accesses. */
struct etch_pattern {
    char name[4];
    uint32_t n;
    uint32_t turn[3];
    uint32_t at[3]; /* the access of each turn that the name's letter speaks of */
    bool proven;    /* the order of the turns is */
    bool alone;     /* WR within one thread: where the value came from */
    bool last;      /* its last turn is the last of that statement at this object; of RW: its first */
};

/* Two reads that one call makes and two writes that another thread's call makes, of which the first read saw the first
 * write and the second read was before the second write: one variable was new, the other old. */
struct etch_torn {
    uint32_t turn[4]; /* write, read; read, write */
    bool proven;      /* that the second read was before the second write; else it is open */
};

typedef void etch_torn_visitor(void *context, const struct etch_torn *torn);

void etch_turns_torn(const struct etch_turns *turns, const struct etch_run *run, etch_torn_visitor *visit,
                     void *context);

/* Called for each pattern. */
typedef void etch_pattern_visitor(void *context, const struct etch_pattern *pattern);

void etch_turns_patterns(const struct etch_turns *turns, const struct etch_run *run, etch_pattern_visitor *visit,
                         void *context);

#endif
