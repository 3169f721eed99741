/* SPDX-License-Identifier: MIT */
/* Private to diagnose*.c: a diagnosis under way. */
#ifndef ETCH_DIAGNOSE_DIAGNOSE_MODEL_H
#define ETCH_DIAGNOSE_DIAGNOSE_MODEL_H

#include "diagnose/diagnose.h"
#include "diagnose/inputs.h"
#include "diagnose/lab_cause.h"
#include "diagnose/lab_explain.h"
#include "diagnose/lab_twin.h"
#include "diagnose/runner.h"
#include "diagnose/stop.h"
#include "diagnose/store.h"

/* The watches of this round. */
struct etch_round {
    unsigned number;
    uint32_t sigma;
    ETCH_ARRAY(char *) watches;            /* for vpt */
    char plan[4200];                       /* for soft and none: the file with the watches, in sets; empty: none */
    size_t found;                          /* watches of the plan whose object other runs have shown */
    ETCH_ARRAY(struct etch_set_seen) sets; /* of the plan, the nearest to the failure first; one without a plan */
};

#define ETCH_LAB_KNOWN 32u    /* failures of the lab that are told apart */
#define ETCH_LAB_PATIENCE 20u /* native runs without a failure, before the lab looks for one */

/* A failure in the lab, and whether it is the one in question. */
struct etch_lab_known {
    enum etch_lab_end end;
    int number;
    uint64_t site;
    bool wanted;
};

/* The lab's part in a diagnosis. */
struct etch_lab_phase {
    bool tried;  /* or not possible */
    bool usable; /* runs were recorded */
    bool proven;
    bool any;          /* a failure at another place than in native runs was taken */
    char output[4200]; /* of a run, for --fails-if */
    char why[512];     /* the lab was not used; empty: it was */
    struct etch_lab_twin twin;
    struct etch_lab_explore explore;
    struct etch_lab_found found;
    struct etch_lab_experiment experiment;
    struct etch_lab_known known[ETCH_LAB_KNOWN];
    uint32_t n_known;
    uint64_t schedules;
    struct etch_run_set runs;
    struct etch_lab_explain explain; /* with --explain */
};

struct etch_diagnosis {
    const struct etch_diagnose_options *o;
    struct etch_diagnose_observer observer;
    char program[4096]; /* the binary */
    char folder[4096];
    struct etch_run_set runs;
    struct etch_runner runner;
    struct etch_lab_twin twin; /* with source lab */
    struct etch_store *store;
    Etch__Clock *clock;
    double began;
    struct etch_inputs inputs; /* none: all runs are alike */
    struct etch_stop stop;
    struct etch_round round;
    unsigned stored; /* runs of the store */
    unsigned failures, unplaced;
    unsigned needed; /* failures of the bug when its best predictor became the best, and strong */
    bool done;
    bool advised; /* that no run passes */
    struct etch_lab_phase lab;
};

bool etch_diagnosis_is_ours(const struct etch_diagnosis *d, const struct etch_run_bundle *b);

/* Failing runs with watches of one bug. */
unsigned etch_diagnosis_count_tracked(const struct etch_diagnosis *d, const char *bucket);

/* Begins the next round, with the first `sigma` statements of the slice. */
int etch_diagnosis_next_round(struct etch_diagnosis *d, uint32_t sigma, struct etch_error *err);

/* True if runs have shown that more of the plan's instructions use the program's own variables. These variables can be
 * watched from the start, and need no register for each instruction. */
bool etch_diagnosis_has_found(const struct etch_diagnosis *d);

void etch_round_release(struct etch_round *round);

/* Opens the store and takes its runs in. */
int etch_diagnosis_open_store(struct etch_diagnosis *d, struct etch_error *err);

/* Takes in the bundle of a run that failed elsewhere. It is not copied into the store. */
int etch_diagnosis_take_from(struct etch_diagnosis *d, const char *bundle, struct etch_error *err);

/* Takes a run in. A recording that adds nothing is removed, and the run only counted. */
int etch_diagnosis_keep(struct etch_diagnosis *d, const struct etch_runner_result *result, bool *kept,
                        struct etch_error *err);

/* The set of watches that a run of this round took; NULL: it took none. */
struct etch_set_seen *etch_diagnosis_set_of(struct etch_diagnosis *d, const struct etch_runner_result *result);

/* ---- diagnose_lab.c ---- */

/* True once, when it is time for the lab: something failed, or nothing failed for long. */
bool etch_diagnosis_lab_is_due(const struct etch_diagnosis *d);

/* Looks for the failure in the lab, and proves its cause. A lab that cannot be used is noted, and is no error. */
int etch_diagnosis_use_lab(struct etch_diagnosis *d, struct etch_error *err);

/* True if the lab's runs say more than the native ones. */
bool etch_diagnosis_prefers_lab(const struct etch_diagnosis *d);

Etch__Sketch *etch_diagnosis_lab_sketch(struct etch_diagnosis *d, bool all, struct etch_error *err);

void etch_lab_phase_release(struct etch_lab_phase *lab);

#endif
