/* SPDX-License-Identifier: MIT */
/* A recorded run as the sketch needs it: the statements of the slice that each thread executed, the outcomes of its
 * branches, the accesses to watched memory with their statements and values, their proven order, and how the run ended.
 *
 * A place is a line of the source. Places, variables and objects are numbered by a struct etch_names that all runs of a
 * sketch share, so that the same number means the same thing in each run. */
#ifndef ETCH_SKETCH_RUN_H
#define ETCH_SKETCH_RUN_H

#include "base/array.h"
#include "base/error.h"
#include "base/index.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

#define ETCH_NOWHERE UINT32_MAX

/* ---- Data that runs share ---- */

struct etch_line_place {
    char *file;
    char *function;
    uint32_t line;
    uint32_t statement; /* the nearest of the slice on that line: its index there + 1; 0: not in the slice */
    uint32_t distance;  /* of that statement; UINT32_MAX: not in the slice */
    bool decides;       /* only its branch is in the slice */
    bool branches;      /* the source has a branch there */
};

struct etch_names {
    ETCH_ARRAY(struct etch_line_place) places;
    ETCH_ARRAY(char *) variables;
    ETCH_ARRAY(char *) locations; /* by variable, as the slice has them; NULL: not known, "": more than one */
    struct etch_index by_place, by_variable;
    const Etch__Slice *slice; /* the slice of the places; NULL: none */
};

void etch_names_release(struct etch_names *names);

/* The number of a place or of a variable. A new place or variable gets a number. ETCH_NOWHERE when memory is short. */
uint32_t etch_names_place(struct etch_names *names, const char *file, uint32_t line, const char *function);
uint32_t etch_names_variable(struct etch_names *names, const char *name);

/* Sets the location of a variable, as the slice has it. Returns 0, or -1 when memory is short. */
int etch_names_locate(struct etch_names *names, uint32_t variable, const char *location);

/* The number of a place; ETCH_NOWHERE: it has none. */
uint32_t etch_names_find_place(const struct etch_names *names, const char *file, uint32_t line, const char *function);

/* Gives a place to each statement of the slice, which must stay as long as the names do. Returns 0, or -1 when memory
 * is short. */
int etch_names_slice(struct etch_names *names, const Etch__Slice *slice);

/* True if values flow from one place to another: by data, memory, arguments or returned values, over any number of
 * statements of the slice. */
bool etch_names_feeds(const struct etch_names *names, uint32_t from, uint32_t to);

/* ---- One run ---- */

/* A place that a thread executed: how often, and the last time. */
struct etch_run_visit {
    uint32_t thread, place;
    uint64_t count;
    uint64_t seq;    /* of the last time: steps of the thread before it */
    uint64_t lo, hi; /* when that was, in TSC; 0 and UINT64_MAX: no bound */
    uint32_t depth;  /* of calls */
};

/* An outcome of a conditional branch of a slice statement, by the branch's address in the file. */
struct etch_run_branch {
    uint32_t place;
    uint64_t address;
    bool taken;
    uint32_t to;          /* the first place of the slice executed after it, or ETCH_NOWHERE */
    uint32_t thread;      /* that had it; ETCH_NOWHERE: several had */
    uint64_t first, last; /* when it had it: steps of the thread before it */
    bool at_last;         /* the branch had this outcome the last time */
};

/* A thread had the second outcome at a time when the first was the newest one of its branch. */
struct etch_run_branch_pair {
    uint32_t first, second; /* indexes of branches */
    uint64_t seq;           /* of the second, the first time that it was so: steps of the thread before it */
};

struct etch_run_access {
    uint32_t thread, place;
    uint32_t operand;  /* as its own statement calls it: a variable, or ETCH_NOWHERE */
    uint32_t watch;    /* as its watch calls it: a variable, or ETCH_NOWHERE */
    uint32_t variable; /* one for all names of the same memory; see etch_runs_unify() */
    uint32_t
        object;   /* accesses of one number are to the same memory, in this run; ETCH_NOWHERE: known for itself only */
    uint64_t nth; /* which of the thread's visits of the place it belongs to, from 1; 0: not known */
    uint64_t seq; /* steps of the thread before it; UINT64_MAX: not known */
    uint64_t value;
    uint64_t address;
    uint64_t lo, hi; /* TSC */
    uint32_t size, depth;
    uint32_t call;  /* which of the thread's calls it was made in, from 1; 0: not known */
    uint32_t event; /* in the order; ETCH_NOWHERE: none */
    bool read, write, known;
    bool crash;   /* known from how it failed, not seen */
    bool outside; /* made by a library that the statement called */
    bool header;  /* made by code of a system header that the statement called, and that is part of the program */
    uint8_t how;  /* of a recovered value: enum etch_how_known */
    bool handler; /* made by a signal handler, which came between like another thread */
};

struct etch_run_sync {
    uint32_t thread, place;
    Etch__SyncOp op;
    uint64_t object, other;
    int32_t result;
    uint64_t tsc;
    uint32_t event; /* in the order; ETCH_NOWHERE: none */
};

/* An instruction at which a debug register was set, and the object that it was set on: both as addresses in the
 * program's file, as if the object were the program's own variable. */
struct etch_run_site {
    uint64_t instruction, object;
};

/* A number + 1 for each place; 0: none. */
struct etch_by_place {
    uint32_t *v;
    size_t n, capacity;
};

struct etch_comparison_points {
    uint32_t *v;
    size_t n, capacity;
};

struct etch_run_thread {
    uint32_t tid, parent; /* parent: number of the thread that made it, or ETCH_NOWHERE */
    char *name;           /* of its start function, "main" for the first */
    uint32_t wait_place; /* the thread's position at the end, the nearest place within the program; ETCH_NOWHERE: it had
                            ended */
    char *wait_in;       /* the function outside of the program that the thread was in; NULL: none */
    bool gave_status;    /* `frames` are of the statement that gave the exit status, not of the thread's end */
    bool called_exit;    /* its last action in the program was a call that took the status */
    bool part;           /* in a failing run: the thread failed, or it hangs */
    bool lost;           /* some of its steps are missing */
    char *unseen;     /* its steps end in this function, before its position at the end: it may have done more in this
                         function and in the functions of its stack. NULL: the steps lead to that position */
    uint32_t made_at; /* place of its pthread_create, or ETCH_NOWHERE */
    ETCH_ARRAY(uint64_t) frames;  /* position at the end, innermost first: instruction, then return addresses */
    ETCH_ARRAY(char *) arguments; /* by frame of `stack`, "n = 3": the known ones; empty: none. Shorter: no more */
    ETCH_ARRAY(uint32_t) stack;   /* the same as places, in a failing run: only places within the program */
};

struct etch_run {
    char *name;   /* for messages */
    uint64_t key; /* sorts runs in the same way, independent of the path of their files */
    bool failing;
    char *bucket; /* failing statement and stack, in words; two bugs differ here. NULL of a passing run */
    uint32_t failing_place, failing_thread;
    uint32_t null_operand, null_variable; /* the null pointer that was dereferenced; ETCH_NOWHERE: none */
    const struct etch_names *names;       /* NULL: there was no slice */
    bool flow; /* control flow was recorded: a statement of the slice without a visit did not run */
    bool lost; /* steps are missing: a statement without a visit may have run */
    bool cut;
    bool inferred; /* the run failed outside of any call of the program: failing_place is its thread's last call to the
                      outside */
    Etch__Source source;
    Etch__Failure *failure;
    ETCH_ARRAY(char *) command; /* the words of its command line */
    const char *input;          /* of several inputs, or the file of standard input; NULL: none. Not owned */
    ETCH_ARRAY(struct etch_run_thread) threads;
    ETCH_ARRAY(struct etch_run_visit) visits;  /* by thread, then seq */
    ETCH_ARRAY(struct etch_run_visit) history; /* of a failing run: the newest visits of each place by each thread */
    struct etch_by_place first_visit, last_access;        /* made by etch_run_index() */
    struct etch_index last_value;                         /* accesses with known values, the newest of its kind only */
    ETCH_ARRAY(struct etch_run_branch) branches;          /* each outcome once */
    ETCH_ARRAY(struct etch_run_branch_pair) branch_pairs; /* each pair once, by second, then first */
    ETCH_ARRAY(struct etch_run_access) accesses;          /* in an order that contradicts no proven pair */
    /* Values that the failing thread's last statements had, recovered from its end, as the thread ran. Only shown: no
     * predictor is made of them. */
    ETCH_ARRAY(struct etch_run_access) recovered;
    bool recovered_from_core;               /* else from the failure record alone */
    ETCH_ARRAY(struct etch_run_sync) syncs; /* by thread, as they came */
    bool synced;                            /* all synchronisations were recorded */
    ETCH_ARRAY(uint32_t) watched_operands;  /* all accesses to these were recorded, from their arming on */
    ETCH_ARRAY(uint32_t) watched;           /* the same, as variables */
    ETCH_ARRAY(uint32_t)
    sited_operands; /* the watched operands that a debug register watches: only the first objects that were used, as
                       many as there are registers */
    ETCH_ARRAY(uint32_t) sited; /* the same, as variables */
    ETCH_ARRAY(struct etch_run_site) sites;
    /* Comparison points of a passing run: its accesses by the statement at which other runs failed, by number. The
     * state at these points is compared with the state at a failure. See etch_runs_unify(). */
    struct etch_comparison_points comparison_points;
    /* The first symptom is a statement that only failing runs execute, before they fail. Its comparison points in a
     * passing run are the accesses by the branch that decides on it. A failing run made `first_symptom` accesses before
     * it; UINT32_MAX: not known. */
    struct etch_comparison_points early_comparison_points;
    uint32_t first_symptom;
    ETCH_ARRAY(Etch__Loss *) losses;
    struct etch_run_order *order; /* NULL: nothing across threads is known */
    /* Stamps of two CPUs differ by at most `clock_width` cycles, as measured. Not `clocks_known`: no bound was
     * measured, and `clocks_why` says why. */
    bool clocks_known;
    uint64_t clock_width;
    char clocks_why[160];
    /* Facts about all accesses, and about the accesses up to the first symptom; NULL: not computed yet. */
    struct etch_facts *facts[2];
    uint64_t facts_key;  /* a hash of the data that etch_runs_unify() gave to the accesses */
    unsigned facts_made; /* times */
};

void etch_run_free(struct etch_run *run);

/* Makes the questions below fast, once all visits and accesses are there; again after they changed. Returns 0, or -1
 * when memory is short. */
int etch_run_index(struct etch_run *run);

/* After visits or accesses changed: the facts about the run are computed again. */
void etch_run_forget_facts(struct etch_run *run);

/* Makes the runs of one bug comparable. Statements may have different names for the same memory: such memory gets the
 * same variable in all runs, and the runs are indexed again. Notes the comparison points of passing runs. Returns 0, or
 * -1 when memory is short. */
int etch_runs_unify(const struct etch_names *names, struct etch_run *const *runs, size_t n);

/* The order of two accesses: -1 `a` is first, 1 `b` is first, 0 unordered. */
int etch_run_compare(const struct etch_run *run, const struct etch_run_access *a, const struct etch_run_access *b);

/* The words for it: "values", "clocks: 412 cycles apart", ... */
void etch_run_why(const struct etch_run *run, const struct etch_run_access *a, const struct etch_run_access *b,
                  char *text, size_t size);

const struct etch_run_visit *etch_run_visited(const struct etch_run *run, uint32_t place);

/* The same, in one thread. */
const struct etch_run_visit *etch_run_visited_by(const struct etch_run *run, uint32_t thread, uint32_t place);

/* The visit that an access was made in, as far as the access knows. */
struct etch_run_visit etch_run_visit_of(const struct etch_run_access *access);

/* The newest visit before a step of the thread, the first visit after it; NULL: none, or too long ago to be known. */
const struct etch_run_visit *etch_run_visited_before(const struct etch_run *run, uint32_t thread, uint32_t place,
                                                     uint64_t seq);
const struct etch_run_visit *etch_run_visited_after(const struct etch_run *run, uint32_t thread, uint32_t place,
                                                    uint64_t seq);

/* True if an access at this place was recorded. */
bool etch_run_accessed(const struct etch_run *run, uint32_t place);

/* True if a statement without a visit may have run at the end of a thread. */
bool etch_run_may_have(const struct etch_run *run, uint32_t place);

/* True if the run failed at this place. In a hang: true if a thread that has a part in the hang is at this place. */
bool etch_run_fails_at(const struct etch_run *run, uint32_t place);

/* The newest access to a variable at a place whose value is known, or NULL. */
const struct etch_run_access *etch_run_last_value(const struct etch_run *run, uint32_t place, uint32_t variable,
                                                  bool write);

#endif
