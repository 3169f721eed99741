/* SPDX-License-Identifier: MIT */
/* The stop rule of a diagnosis, as pure functions. They decide which set of watches the next run takes, which runs are
 * worth keeping, and the next action after a run: go on, watch otherwise, watch more, or end. */
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
    char *text; /* NULL: no predictor; the caller that made the text frees it */
    double f;
    unsigned failing_true, passing; /* failing runs in which the predictor is true, passing runs in which it is known */
    bool is_value;
    bool is_said; /* the predictor is only about how the program reported the failure */
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
    bool repeats;             /* the first failing runs took the same way, without threads: it fails each time */
    bool patient;             /* the user said how many runs, or how long */
};

/* The set for the next run. */
uint32_t etch_stop_next_set(const struct etch_set_seen *sets, size_t n);

/* True if the round has the runs that it can have: failing and passing runs with every set of watches, or as many over
 * all sets if one set never has both. `most`: asks for as many failures as are kept, because there is no cause yet. */
bool etch_stop_round_over(const struct etch_stop *stop, bool most);

/* True if enough passing runs like this one are kept. `set`: the set of watches that the run took in this round; NULL:
 * none. */
bool etch_stop_enough_passes(const struct etch_stop *stop, bool tracked, const struct etch_set_seen *set);

/* The same for a failing run with watches, which is already counted in its set. `ours`: the run has the bug in
 * question; `placed`: the run failed at a known place; `alike`: failing runs with watches and the same bug, including
 * this run. */
bool etch_stop_enough_failures(const struct etch_stop *stop, bool ours, bool placed, unsigned alike,
                               const struct etch_set_seen *set);

/* True if a passing run of a set can still change the ranking. */
bool etch_stop_worth_ranking(const struct etch_stop *stop, const struct etch_set_seen *set);

/* True if the best predictor may be a consequence of the cause: a value that threads share, or how the failure was
 * reported. */
bool etch_stop_is_symptom(const struct etch_stop *stop);

/* True if the best predictor is strong and holds in enough runs. */
bool etch_stop_is_enough(const struct etch_stop *stop);

/* True if it is time to ask whether runs have shown where the watched objects are. */
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

/* After this many runs without a pass the user hears of it. */
#define ETCH_STOP_NEVER_PASSES 3u

/* True if more runs will not help, because none passes. */
bool etch_stop_is_hopeless(const struct etch_stop *stop);

#endif
