/* SPDX-License-Identifier: MIT */
/* From runs to the sketch. Ranks predictors by the failing runs of a bug and the passing runs, and lays out the failing
 * run that shows most: which statements, in which thread, in which order, with which values. */
#ifndef ETCH_SKETCH_COMPOSE_H
#define ETCH_SKETCH_COMPOSE_H

#include "base/error.h"
#include "sketch/predictor.h"
#include "sketch/run.h"

/* Line `line` of `file` without its end, valid until the next call; NULL: not available. */
typedef const char *etch_source_line(void *context, const char *file, uint32_t line);

struct etch_compose_options {
    const Etch__Slice *slice;
    uint32_t round, sigma; /* 0: not from a series of rounds */
    const char *bucket;    /* which failure; NULL: the commonest */
    bool all;              /* every executed statement of the slice, not only the most useful */
    etch_source_line *source;
    void *source_context;
    char *const *notes; /* notes of the caller */
    size_t n_notes;
    const struct etch_experiment *experiment; /* the answer of experiments, for the first place; NULL: none */
};

/* `runs` may be of several bugs: the runs of the commonest failure are taken, the others are counted. At least one run
 * is failing. The result does not depend on the order of the runs. Returns the sketch, to be freed with
 * etch__sketch__free_unpacked(), or NULL with `err` set. */
Etch__Sketch *etch_compose(const struct etch_names *names, struct etch_run *const *runs, size_t n,
                           const struct etch_compose_options *options, struct etch_error *err);

/* At most this many predictors are in a sketch. */
#define ETCH_SHOWN_PREDICTORS 64u

/* The predictors of such a sketch, without its picture: all predictors, best first; none if no run passed. To be
 * released. Returns 0, or -1 with `err` set. */
int etch_rank(struct etch_predictors *predictors, const struct etch_names *names, struct etch_run *const *runs,
              size_t n, const char *bucket, struct etch_error *err);

#endif
