/* SPDX-License-Identifier: MIT */
/* The stop rule of a diagnosis, as pure functions: which set of watches the next run takes, which runs are worth
 * keeping, and what is to be done after a run: go on, watch otherwise, watch more, or end. */
#ifndef ETCH_DIAGNOSE_STOP_H
#define ETCH_DIAGNOSE_STOP_H

#include "sketch/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* F from which a predictor counts as strong. */
#define ETCH_STOP_STRONG 0.97

/* The results of the runs of this round that took one set of watches. */
struct etch_set_seen {
    unsigned tries, failing, passing; /* failing: with the bug in question */
};

/* The best predictor so far. */
struct etch_best {
    char *text; /* NULL: there is none; whoever made it frees it */
    double f;
    unsigned failing_true, passing; /* failing runs of which it is true, passing runs that can tell */
    bool is_value;
    bool is_said; /* it speaks only of how the program came to report the failure */
};

struct etch_stop {
    const struct etch_set_seen *sets; /* of the round's plan, the nearest to the failure first; one without a plan */
    size_t n_sets;
    struct etch_best best;
    unsigned runs, passed;    /* of all rounds */
    unsigned failing_tracked; /* failing runs of the bug in question, with watches */
    unsigned passing_kept[2]; /* recordings of passing runs: without watches, and with */
    unsigned enough;          /* runs when the best was first good enough; 0: not yet */
    unsigned plans;           /* plans made for this many statements */
    uint32_t slots;           /* watches in a set, at most */
    bool native;              /* the watches are the CPU's own */
    bool threaded;            /* a failing run had more threads than one */
    bool exhausted;           /* the whole slice is watched */
    bool patient;             /* the user said how many runs, or how long */
};

/* The set for the next run. */
uint32_t etch_stop_next_set(const struct etch_set_seen *sets, size_t n);

/* Whether the round has the runs that it can have: failures and passes with every set of watches, or as many over all
 * sets where one set never has both. `most`: as many failures as are kept, because there is no cause yet. */
bool etch_stop_round_over(const struct etch_stop *stop, bool most);

/* Whether a passing run is one of enough like it. `set`: the one that it took in this round; NULL: it took none. */
bool etch_stop_enough_passes(const struct etch_stop *stop, bool tracked, const struct etch_set_seen *set);

/* The same of a failing run with watches, which is already counted in its set. `ours`: of the bug in question;
 * `placed`: it failed at a known place; `alike`: failing runs with watches of its bug, this one included. */
bool etch_stop_enough_failures(const struct etch_stop *stop, bool ours, bool placed, unsigned alike,
                               const struct etch_set_seen *set);

/* Whether a passing run of a set can still change the ranking. */
bool etch_stop_worth_ranking(const struct etch_stop *stop, const struct etch_set_seen *set);

/* Whether the best predictor may be what came of the cause: a value that threads share, or how the failure was
 * reported. */
bool etch_stop_is_symptom(const struct etch_stop *stop);

/* Whether the best predictor is strong, and holds in runs enough. */
bool etch_stop_is_enough(const struct etch_stop *stop);

/* Whether it is time to ask if runs have shown where the watched objects are. */
bool etch_stop_may_replan(const struct etch_stop *stop);

enum etch_next {
    ETCH_NEXT_RUN,    /* go on as before */
    ETCH_NEXT_REPLAN, /* a new plan for the same statements */
    ETCH_NEXT_FEWER,  /* the same with half the watches at a time */
    ETCH_NEXT_WIDEN,  /* twice as many statements */
    ETCH_NEXT_END,
};

/* After each ranking. `found`: runs have shown where more of the watched objects are. Notes in `stop` when the best
 * became good enough. */
enum etch_next etch_stop_decide(struct etch_stop *stop, bool found);

/* Whether more runs will not help: none passes. */
bool etch_stop_is_hopeless(const struct etch_stop *stop);

#endif
