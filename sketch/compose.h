/* SPDX-License-Identifier: MIT */
/* From runs to the sketch: one bug's failing runs and the passing ones, ranked, and the most telling failing run laid
 * out: which statements, in which thread, in which order, with which values. */
#ifndef ETCH_SKETCH_COMPOSE_H
#define ETCH_SKETCH_COMPOSE_H

#include "base/error.h"
#include "sketch/predictor.h"
#include "sketch/run.h"

/* Line `line` of `file` without its end, good until the next call; NULL where it is not at hand. */
typedef const char *etch_source_line(void *context, const char *file, uint32_t line);

struct etch_compose_options {
    const Etch__Slice *slice;
    uint32_t round, sigma; /* 0: not from a series of rounds */
    const char *bucket;    /* which failure; NULL: the commonest */
    bool all;              /* every executed statement of the slice, not the telling ones only */
    etch_source_line *source;
    void *source_context;
    char *const *notes; /* what the caller has to say */
    size_t n_notes;
};

/* `runs` may be of several bugs: those of the commonest failure are taken, the others counted. At least one is failing.
 * The result depends on what the runs are and not on their order. Returns the sketch, to be freed with
 * etch__sketch__free_unpacked(), or NULL with `err` set. */
Etch__Sketch *etch_compose(const struct etch_names *names, struct etch_run *const *runs, size_t n,
                           const struct etch_compose_options *options, struct etch_error *err);

/* At most this many predictors are in a sketch. */
#define ETCH_SHOWN_PREDICTORS 64u

/* The predictors of such a sketch, without its picture: all of them, best first, none where no run passed. To be
 * released. Returns 0, or -1 with `err` set. */
int etch_rank(struct etch_predictors *predictors, const struct etch_names *names, struct etch_run *const *runs,
              size_t n, const char *bucket, struct etch_error *err);

/* The bucket that etch_compose() would take: that of most failing runs; of as many, the first by name. NULL: none
 * fails. */
const char *etch_commonest_failure(struct etch_run *const *runs, size_t n);

#endif
