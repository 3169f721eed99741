/* SPDX-License-Identifier: MIT */
/* Predictors: statements that are true, false or unknown of a run. Candidates come from the failing runs. All runs rank
 * them by how well they separate failing from passing runs. */
#ifndef ETCH_SKETCH_PREDICTOR_H
#define ETCH_SKETCH_PREDICTOR_H

#include "sketch/run.h"

enum etch_predictor_kind {
    ETCH_PREDICTOR_LOCK_ORDER, /* of a hang: locks held in a ring */
    ETCH_PREDICTOR_WAIT,       /* of a hang: the wake-up came before the wait, or never */
    ETCH_PREDICTOR_ATOMICITY,  /* another thread's access between two of one thread */
    ETCH_PREDICTOR_ORDER,      /* an access before another thread's */
    ETCH_PREDICTOR_VALUE,
    ETCH_PREDICTOR_ORIGIN, /* by which statement of its own thread a value was written */
    ETCH_PREDICTOR_BRANCH,
    ETCH_PREDICTOR_EXECUTED,
    ETCH_PREDICTOR_KINDS,
};

enum etch_value_test {
    ETCH_VALUE_ZERO,
    ETCH_VALUE_EQUAL,
    ETCH_VALUE_NEGATIVE,
    ETCH_VALUE_BELOW, /* less than any passing run's */
    ETCH_VALUE_ABOVE,
    ETCH_VALUE_LESS, /* than the newest value of another variable in the same call */
    ETCH_VALUE_SAME,
    ETCH_VALUE_GREATER,
};

/* What a predictor says of a branch's outcome. */
enum etch_branch_test {
    ETCH_BRANCH_EVER,    /* the branch had it */
    ETCH_BRANCH_NEVER,   /* the branch ran and never had it */
    ETCH_BRANCH_AT_LAST, /* the branch had it the last time */
    ETCH_BRANCH_AFTER,   /* the branch had it, when a given outcome was the newest of the branch at places[0] */
};

enum etch_truth { ETCH_FALSE, ETCH_TRUE, ETCH_UNKNOWN };

#define ETCH_PREDICTOR_PLACES 8u

/* How sure a predictor is. */
enum etch_sureness {
    ETCH_SUSPECT,   /* by comparison of runs alone */
    ETCH_NECESSARY, /* by experiment: the failure disappears without it */
    ETCH_PROVEN,    /* by experiment: necessary, and enough for the failure */
};

/* The answer of experiments: what was turned round and enforced, and how often the program failed then. */
struct etch_experiment {
    enum etch_sureness sureness;
    enum etch_predictor_kind kind;
    uint32_t n_places;
    uint32_t places[ETCH_PREDICTOR_PLACES];
    char pattern[8];
    uint32_t turned_failed, turned; /* runs that failed, of those with the opposite enforced */
    uint32_t alone_failed, alone;   /* the same, of those in which nothing else was enforced */
};

struct etch_predictor {
    enum etch_predictor_kind kind;
    uint32_t n_places;
    uint32_t places[ETCH_PREDICTOR_PLACES];
    uint64_t value;
    uint64_t address; /* of the branch */
    uint64_t before;  /* ETCH_BRANCH_AFTER: the address of the other branch */
    double precision, recall, f, f_lo, f_hi;
    uint32_t variable; /* ETCH_NOWHERE: none */
    uint32_t second;   /* of an atomicity of two variables: that of the last two places; of a comparison: the other
                        variable; else ETCH_NOWHERE */
    enum etch_value_test test;
    enum etch_branch_test branch;
    uint32_t size;      /* of the value */
    uint32_t before_to; /* like `to`, of the branch before */
    uint32_t to;        /* where the branch went, in the run that brought it up */
    uint32_t failing_true, failing, passing_true, passing, unknown;
    uint32_t distance, spread;         /* of its nearest statement, and of all its statements, from the failure */
    char pattern[8];                   /* WR, RWR, ... */
    struct etch_experiment experiment; /* suspect: none was made */
    bool ever;   /* the predictor counts any time; otherwise the last time. A value at the failing statement: no passing
                    run may have had the value at any time */
    bool torn;   /* atomicity of two variables, seen in the calls that made the accesses */
    bool refill; /* RW: the write comes before each read, and had not come */
    bool negated;        /* executed: the statement did not run */
    bool write;          /* a value written, rather than read */
    bool taken;          /* the branch was taken */
    bool before_taken;   /* the branch before was taken */
    bool sequential;     /* the failing runs had one thread */
    bool guards;         /* a branch that leads to the failing statement and to nothing before it */
    bool fatal;          /* a value of 0 with which the failing statement must fault */
    double increase;     /* Pr(fails | the predictor is true) - Pr(fails | its statement was reached) */
    double position;     /* when it became true: 0 at the start of the failing runs, 1 at their end */
    bool guarded;        /* intended atomicity: an update, or a check and the access that it guards */
    bool constant_order; /* the order is the same in all runs, so it explains nothing */
    bool first_symptom;  /* an order that held up to the first symptom, before the failure */
    bool off_path;       /* an order at the failing statement in which only a thread that did not fail has a part */
    bool early;          /* an order whose second statement had run in no failing run */
    bool followed;       /* the failing statement dereferences the pointer */
    bool stray;          /* an origin that should write something else */
    bool left_over;  /* an origin before the memory was freed and allocated again: the value is of the owner before */
    bool proper;     /* an origin that should write the variable */
    bool only_there; /* an origin of a value that only failing runs read */
    bool unwritten;  /* a value that no statement of the slice wrote in a run that had it */
};

struct etch_predictors {
    ETCH_ARRAY(struct etch_predictor) all; /* best first */
};

/* Finds and ranks predictors. `runs` are the failing runs of one bug and the passing runs. The result does not depend
 * on their order. Returns 0, or -1 when memory is short. */
int etch_predictors_find(struct etch_predictors *predictors, const struct etch_names *names,
                         const struct etch_run *const *runs, size_t n);
/* Puts the answer of experiments first: the predictor that says the same, or a new one. Returns 0, or -1 when memory is
 * short. */
int etch_predictors_promote(struct etch_predictors *predictors, const struct etch_experiment *experiment,
                            const struct etch_names *names, const struct etch_run *const *runs, size_t n);

void etch_predictors_release(struct etch_predictors *predictors);

/* The things that a search over a run left out because of a limit. */
struct etch_search_limits {
    size_t unsearched; /* pairs of reads for which not all writes of the object were searched */
    size_t long_rings; /* rings of locks with more threads than a predictor has places for */
};

struct etch_search_limits etch_predictors_limits(const struct etch_run *run);

/* True for a predictor about accesses of several threads. */
bool etch_predictor_is_threaded(const struct etch_predictor *predictor);

#define ETCH_PREDICTOR_ACCESSES 4u

/* The accesses that make an order, atomicity or origin predictor true in a run, or the last access with a value
 * predictor's value: indexes into the run's accesses. Returns their number; 0: the predictor is not true in the run. */
size_t etch_predictor_instance(const struct etch_predictor *predictor, const struct etch_run *run,
                               uint32_t at[ETCH_PREDICTOR_ACCESSES]);

enum etch_truth etch_predictor_holds(const struct etch_predictor *predictor, const struct etch_names *names,
                                     const struct etch_run *run);

const char *etch_predictor_kind_name(enum etch_predictor_kind kind);

/* "main bug.c:39 before consumer bug.c:18" */
void etch_predictor_text(const struct etch_predictor *predictor, const struct etch_names *names, char *text,
                         size_t size);

/* "WR", "null", "taken", ... */
const char *etch_predictor_pattern(const struct etch_predictor *predictor);

/* F with beta 0.5: precision counts more. */
double etch_f_half(double precision, double recall);

/* The Wilson interval of k among n, at 95 %. */
void etch_wilson(uint32_t k, uint32_t n, double *lo, double *hi);

#endif
