/* SPDX-License-Identifier: MIT */
/* A set of runs of one program. It owns the data that the runs share (the program's model, the slice, the names), takes
 * bundles in, and makes a sketch of the failure in question. */
#ifndef ETCH_DIAGNOSE_RUN_SET_H
#define ETCH_DIAGNOSE_RUN_SET_H

#include "base/array.h"
#include "binary/object.h"
#include "binary/symbols.h"
#include "collector/policy.h"
#include "decoder/kept_steps.h"
#include "diagnose/stop.h"
#include "sketch/compose.h"
#include "sketch/run.h"
#include "sketch/verdict.h"
#include "slicer/slice.h"

typedef ETCH_ARRAY(char *) etch_run_notes;

struct etch_run_bundle {
    char *path;
    const char *input; /* of several inputs; NULL: see the set. Not owned */
    char *core;        /* a core file of the same process; NULL: none */
    enum etch_verdict verdict;
    uint64_t key; /* when it ran: the order in which they are read does not count */
    bool failing;
    bool threaded;          /* more than one thread ran */
    bool tracked;           /* something was watched */
    bool unplaced;          /* the run failed at no known place of the program: nothing can be sliced from it */
    char *bucket;           /* of a failing one, once known */
    Etch__Failure *failure; /* of a failing one, as the model had it when it was taken in */
    struct etch_run *run;   /* with the slice, once there is one */
    struct etch_recording *recording; /* NULL: opened again when needed */
    struct etch_kept_steps steps;
    size_t size; /* that the two take */
};

/* How often each result was computed. A test reads the counts, to see that nothing is computed twice. */
struct etch_run_counts {
    size_t opened;   /* recordings */
    size_t decoded;  /* recordings whose control flow was */
    size_t dwarf;    /* files whose DWARF was loaded */
    size_t facts;    /* tables of how threads met */
    size_t ranked;   /* times that predictors were */
    size_t laid_out; /* pictures */
};

/* The statements that can give an exit status. */
struct etch_run_exits {
    uint32_t status;
    Etch__Slice *statements;
};

struct etch_run_set {
    const char *program;
    char *twin;          /* its lab build, if the runs are of the lab: then `program` is this file */
    struct etch_elf elf; /* of the program, read with the first bundle */
    ProtobufCBinaryData build_id;
    const char *bug;              /* which failure, by a part of its name; NULL: the commonest */
    const char *input;            /* for the sketch: the file of standard input; NULL: none */
    size_t foreign;               /* bundles in which the program did not run */
    size_t unended;               /* bundles that end before their run did: whether it failed is not known */
    bool lenient;                 /* where there is none of that name: the commonest */
    struct etch_model *model;     /* opened when first needed */
    ETCH_ARRAY(char *) libraries; /* libraries with bitcode that a run has loaded by itself */
    Etch__Slice *layout;          /* of the model */
    ETCH_ARRAY(struct etch_run_exits) exits;
    struct etch_slice *slicing;
    Etch__Slice *slice;
    char *sliced; /* the failure that the slice is of */
    struct etch_names names;
    ETCH_ARRAY(struct etch_run_bundle) bundles;
    etch_run_notes notes;
    etch_run_notes lasting; /* notes of every sketch */
    struct etch_source_text *source;
    struct etch_policy *policy; /* of recovered values; NULL: not read yet */
    struct etch_symbols *symbols;
    const struct etch_experiment *experiment; /* the answer of experiments, for the sketch; NULL: none */
    size_t kept;                              /* bytes of recordings and steps that are kept for another slice */
    struct etch_run_counts counts;
};

void etch_run_set_release(struct etch_run_set *s);

/* Something that the reader of each sketch from now on must know, said once. */
void etch_run_set_note(struct etch_run_set *s, const char *text);

/* Reads the program, so that a program that cannot be sliced is refused before it runs. Returns 0, or -1 with `err`
 * set. */
int etch_run_set_open(struct etch_run_set *s, struct etch_error *err);

/* Takes a bundle in. A bundle is only counted if the program did not run in it, or if it does not say whether the run
 * failed. Returns 0, or -1 with `err` set if the bundle cannot be used at all. */
int etch_run_set_add(struct etch_run_set *s, const char *path, enum etch_verdict verdict, bool tracked,
                     struct etch_error *err);

/* Says that `core` is a core file of the process of a bundle that was added: values are recovered from it. Returns 0,
 * or -1 with `err` set. */
int etch_run_set_join_core(struct etch_run_set *s, const char *path, const char *core, struct etch_error *err);

/* Forgets the bundle that was added last. */
void etch_run_set_drop_last(struct etch_run_set *s);

/* Slices from the commonest failure, unless that is done, and makes the runs of all bundles. */
int etch_run_set_prepare(struct etch_run_set *s, struct etch_error *err);

/* True if at least `n` runs failed, and all in the same way: each thread executed the same statements as often. */
bool etch_run_set_repeats(const struct etch_run_set *s, size_t n);

/* True if a failing run had more than one thread. */
bool etch_run_set_is_threaded(const struct etch_run_set *s);

/* True if the slice begins at a hang. */
bool etch_run_set_hangs(const struct etch_run_set *s);

/* The best predictor, without a picture; `best->text` is to be freed. After etch_run_set_prepare(). */
int etch_run_set_rank(struct etch_run_set *s, struct etch_best *best, struct etch_error *err);

/* The sketch, after etch_run_set_prepare(). */
Etch__Sketch *etch_run_set_compose(struct etch_run_set *s, uint32_t round, uint32_t sigma, bool all,
                                   struct etch_error *err);

#endif
