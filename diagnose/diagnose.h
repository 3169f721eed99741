/* SPDX-License-Identifier: MIT */
/* The whole loop on one machine. Runs the program until it fails and slices from the failure. Watches the memory that
 * the nearest statements of the slice use, runs on, and ranks what failing runs do and passing runs do not. Watches
 * more statements until the best predictor is strong and stays the best. Prints nothing: an observer gets the
 * progress. */
#ifndef ETCH_DIAGNOSE_DIAGNOSE_H
#define ETCH_DIAGNOSE_DIAGNOSE_H

#include "diagnose/run_set.h"

struct etch_diagnose_options {
    char **argv;
    unsigned runs, jobs;
    uint32_t sigma; /* statements in the first round; 0: a number that explains most failures */
    double time, timeout;
    const char *inputs; /* a pattern of files, of which each run gets one; NULL: all runs are alike */
    const char *fails_if, *store, *source, *input, *program, *bug;
    const char *from; /* a bundle of a run that failed elsewhere; NULL: none */
    bool fresh;
    bool explain; /* keeps each experiment in words */
    bool no_lab;  /* no experiments in the lab */
    bool patient; /* the user said how many runs, or how long */
};

/* The progress of a diagnosis. */
struct etch_diagnose_state {
    unsigned runs, failures;
    unsigned unplaced; /* runs that failed, but nowhere in the program */
    unsigned round;    /* 0: nothing is watched yet */
    uint32_t sigma;    /* statements that are watched */
    const char *best;  /* the best predictor's words; NULL: none yet */
    double best_f;
    unsigned needed; /* failures of the bug when the best cause became strong; 0: there is none */
    double seconds;
    const char *folder;              /* of the store */
    uint64_t schedules, experiments; /* runs in the lab: of the search, and for the proof */
    bool lab_failed;                 /* a schedule of the lab fails */
    const char *sureness;            /* "proven", "necessary"; NULL: no experiment has an answer */
};

struct etch_diagnose_observer {
    void *context;
    void (*progress)(void *context, const struct etch_diagnose_state *state); /* NULL: progress is not wanted */
    void (*advise)(void *context, const char *text); /* once: what the user may do; NULL: not wanted */
    bool (*is_interrupted)(void *context);           /* asked between runs: true ends the loop; NULL: never */
};

struct etch_diagnosis;

/* Reads the program and the runs of the store. `options` must stay. Returns 0, or -1 with `err` set; to be freed in
 * either case, where `*diagnosis` is not NULL. */
int etch_diagnosis_open(struct etch_diagnosis **diagnosis, const struct etch_diagnose_options *options,
                        const struct etch_diagnose_observer *observer, struct etch_error *err);

/* Runs the program until the diagnosis is done, or cannot go on. Returns 0, or -1 with `err` set; the runs so far are
 * good in either case. */
int etch_diagnosis_run(struct etch_diagnosis *diagnosis, struct etch_error *err);

/* Ends recorders and their programs at once; a signal's handler may call it. */
void etch_diagnosis_kill(const struct etch_diagnosis *diagnosis);

struct etch_diagnose_state etch_diagnosis_state(const struct etch_diagnosis *diagnosis);

/* The runs, for the source lines of a sketch. */
struct etch_run_set *etch_diagnosis_runs(struct etch_diagnosis *diagnosis);

/* The sketch of the runs so far, to be freed with etch__sketch__free_unpacked(). At least one run must have failed.
 * NULL with `err` set if there is no sketch. */
Etch__Sketch *etch_diagnosis_sketch(struct etch_diagnosis *diagnosis, bool all, struct etch_error *err);

/* The `i`-th line about the experiments, with `explain`; NULL: there are no more. */
const char *etch_diagnosis_explain(const struct etch_diagnosis *diagnosis, size_t i);

/* The `i`-th sentence about the inputs. Returns false if there are no more. */
bool etch_diagnosis_inputs(struct etch_diagnosis *diagnosis, unsigned i, char *text, size_t size);

void etch_diagnosis_free(struct etch_diagnosis *diagnosis);

#endif
