/* SPDX-License-Identifier: MIT */
/* Private to predict/: the facts of a run, from which each question is answered, and the search for predictors over all
 * runs. */
#ifndef ETCH_SKETCH_PREDICT_MODEL_H
#define ETCH_SKETCH_PREDICT_MODEL_H

#include "sketch/predict/access_group.h"
#include "sketch/predict/hang.h"
#include "sketch/predictor.h"

/* ---- Orders in a run, found once for all predictors ---- */

struct order_fact {
    char pattern[4];
    uint32_t n, places[3], variable;
    bool last, proven, alone;
    uint32_t at[3]; /* accesses, of the newest time */
    size_t seq;     /* when it was found: the greater the newer */
};

/* One variable seen new and another old; see struct etch_torn. */
struct torn_fact {
    uint32_t places[4], variable, second, at[4];
    bool proven;
};

/* How a variable's value at a place compared with another variable of the same call. */
struct relation_fact {
    uint32_t place, variable, other;
    uint32_t seen;     /* a bit for each enum etch_value_test */
    uint64_t first[3]; /* when it first was less, the same, greater */
};

/* A statement that reads or writes a variable in a thread. */
struct user {
    uint32_t place, variable, thread;
    bool write;
};

struct etch_facts {
    ETCH_ARRAY(struct order_fact) orders; /* each once, of its newest time */
    ETCH_ARRAY(struct user) users;        /* each once */
    ETCH_ARRAY(struct etch_hang) hangs;
    ETCH_ARRAY(struct torn_fact) torn;
    ETCH_ARRAY(struct relation_fact) relations;
    struct etch_index by_fact, by_user, by_torn, by_relation;
    struct etch_access_groups groups;
    struct etch_search_limits limits;
    size_t found;
    bool failed;
};

/* The run's own, made when they are first asked for; see etch_run_forget_facts(). `early`: see
 * etch_access_groups_make(). NULL when memory is short. */
const struct etch_facts *etch_facts_of(const struct etch_run *run, bool early);

/* The newest fact that makes a predictor of an order true; NULL: none. `open`: such a fact is possible, but the order
 * of its statements is not proven. */
const struct order_fact *etch_facts_find(const struct etch_predictor *p, const struct etch_facts *facts, bool *open);

/* ---- Comparisons of two values ---- */

/* All of a run; false when memory is short. */
bool etch_relations_find(struct etch_facts *facts, const struct etch_run *run);

/* NULL: the two were never compared. */
const struct relation_fact *etch_relation_of(const struct etch_predictor *p, const struct etch_facts *facts);

bool etch_is_relation(const struct etch_predictor *p);
enum etch_truth etch_relation_holds(const struct etch_predictor *p, const struct etch_facts *facts,
                                    const struct etch_run *run);

/* True if a value is the address of an object, which the loader and malloc choose anew in each run. */
bool etch_is_address_value(const struct etch_run_access *a);

/* ---- Branches and times ---- */

enum etch_truth etch_branch_holds(const struct etch_predictor *p, const struct etch_run *run);
bool etch_branch_was_reached(const struct etch_predictor *p, const struct etch_run *run);

/* When a predictor became true in a run: steps of the thread before it; UINT64_MAX: not known. */
uint64_t etch_predictor_time(const struct etch_predictor *p, const struct etch_facts *facts,
                             const struct etch_run *run);

/* The newest step of a run. */
uint64_t etch_run_length(const struct etch_run *run);

/* ---- Truth ---- */

bool etch_executed(const struct etch_run *run, uint32_t place);

/* Returns ETCH_FALSE only if the trace is complete and the statement is in the slice. */
enum etch_truth etch_did_execute(const struct etch_run *run, uint32_t place);

bool etch_is_watched(const struct etch_run *run, uint32_t variable);

/* The two orders that make up WRW, or WRRW of two variables. The last write may not have run. */
void etch_take_halves(const struct etch_predictor *p, struct etch_predictor halves[2]);

int64_t etch_signed_value(uint64_t value, uint32_t size);

/* True if an access has the value that a value predictor is about; true if that value passes the predictor's test. */
bool etch_is_value_of(const struct etch_predictor *p, const struct etch_run_access *a);
bool etch_value_passes(const struct etch_predictor *p, const struct etch_run_access *a);

enum etch_truth etch_holds_by_facts(const struct etch_predictor *p, const struct etch_facts *facts,
                                    const struct etch_run *run);

/* ---- The search ---- */

struct search {
    struct etch_predictors *found;
    const struct etch_names *names;
    const struct etch_run *const *runs;
    const struct etch_facts **facts; /* by run */
    size_t n;
    struct etch_index known; /* into found */
};

/* Takes the facts of all runs. False if memory is short; to be ended in either case. */
bool etch_search_start(struct search *s, bool early);
void etch_search_end(struct search *s);

bool etch_is_one_function(const struct search *s, uint32_t a, uint32_t b);

/* Find candidates, each once: all candidates of failing runs; only orders of their threads; pairs of orders that were
 * found. False if memory is short. */
bool etch_candidates_find(struct search *s);
bool etch_candidates_find_orders(struct search *s);
bool etch_candidates_pair(struct search *s);

/* Counts a candidate in all runs, and finds the properties that decide its rank. */
void etch_judge(struct etch_predictor *p, const struct search *s);

/* True if a failing run had a first symptom before it failed. */
bool etch_has_first_symptom(const struct search *s);

/* Best first. */
void etch_predictors_rank(struct etch_predictors *predictors, const struct etch_names *names);

#endif
