/* SPDX-License-Identifier: MIT */
/* The last instructions of a thread, with the visits that they belong to. */
#ifndef ETCH_SKETCH_RUNS_TRAIL_H
#define ETCH_SKETCH_RUNS_TRAIL_H

#include "decoder/last_values.h"

#define TRAIL_MAX 100000u /* instructions */

struct trail_entry {
    struct etch_last_instruction run;
    uint64_t seq, nth; /* as in struct etch_run_access */
    uint32_t place, depth, call;
};

/* Entries go round and round. */
struct trail {
    struct trail_entry *v; /* TRAIL_MAX; NULL: none yet */
    size_t n, next;
    enum etch_last_gap gap; /* behind the newest entry */
    uint64_t called;
    bool doubtful; /* a signal handler stands at a wrong place: all of it is dropped with the end of the segment */
};

void etch_trail_release(struct trail *trail);

/* False: memory is short. */
bool etch_trail_push(struct trail *trail, const struct trail_entry *entry);

/* Unseen code ran, or something was lost. A loss stays one. */
void etch_trail_gap(struct trail *trail, enum etch_last_gap gap, uint64_t called);

void etch_trail_clear(struct trail *trail);

/* The oldest is 0. `i` is below trail->n. */
const struct trail_entry *etch_trail_at(const struct trail *trail, size_t i);

#endif
