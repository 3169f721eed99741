/* SPDX-License-Identifier: MIT */
/* Predictors about the outcomes of branches, and the time at which a predictor became true in a run. */
#include "sketch/predict/model.h"

#include <stdlib.h>

static const struct etch_run_branch *outcome_of(const struct etch_run *run, uint64_t address, bool taken)
{
    for (size_t i = 0; i < run->branches.n; i++)
        if (run->branches.v[i].address == address && run->branches.v[i].taken == taken)
            return &run->branches.v[i];
    return NULL;
}

/* True if all steps of the functions around a branch were recorded. */
static bool is_complete(const struct etch_predictor *p, const struct etch_run *run)
{
    return run->flow && !run->lost && !etch_run_may_have(run, p->places[p->n_places - 1]);
}

static int by_second(const void *x, const void *y)
{
    const struct etch_run_branch_pair *a = x, *b = y;

    return a->second != b->second ? (a->second < b->second ? -1 : 1) : a->first < b->first ? -1 : a->first > b->first;
}

static const struct etch_run_branch_pair *pair_of(const struct etch_predictor *p, const struct etch_run *run)
{
    const struct etch_run_branch *first = outcome_of(run, p->before, p->before_taken),
                                 *second = outcome_of(run, p->address, p->taken);

    struct etch_run_branch_pair key;

    if (!first || !second || !run->branch_pairs.n)
        return NULL;
    key.first = (uint32_t)(first - run->branches.v);
    key.second = (uint32_t)(second - run->branches.v);
    return bsearch(&key, run->branch_pairs.v, run->branch_pairs.n, sizeof(key), by_second);
}

bool etch_branch_was_reached(const struct etch_predictor *p, const struct etch_run *run)
{
    return outcome_of(run, p->address, true) || outcome_of(run, p->address, false);
}

enum etch_truth etch_branch_holds(const struct etch_predictor *p, const struct etch_run *run)
{
    const struct etch_run_branch *outcome = outcome_of(run, p->address, p->taken);
    enum etch_truth absent = is_complete(p, run) ? ETCH_FALSE : ETCH_UNKNOWN;

    switch (p->branch) {
    case ETCH_BRANCH_NEVER:
        return outcome ? ETCH_FALSE : absent == ETCH_FALSE && etch_branch_was_reached(p, run) ? ETCH_TRUE : absent;
    case ETCH_BRANCH_AT_LAST:
        if (outcome && outcome->thread == ETCH_NOWHERE)
            return ETCH_UNKNOWN; /* which thread's came last is not known */
        return absent == ETCH_UNKNOWN ? absent : outcome && outcome->at_last ? ETCH_TRUE : ETCH_FALSE;
    case ETCH_BRANCH_AFTER:
        return pair_of(p, run) ? ETCH_TRUE : absent;
    default:
        return outcome ? ETCH_TRUE : absent;
    }
}

static uint64_t branch_time(const struct etch_predictor *p, const struct etch_run *run)
{
    const struct etch_run_branch *outcome = outcome_of(run, p->address, p->taken);
    const struct etch_run_branch *other = outcome_of(run, p->address, !p->taken);
    const struct etch_run_branch_pair *pair = NULL;

    if (p->branch == ETCH_BRANCH_NEVER)
        return other ? other->last : UINT64_MAX; /* until then it could have had the other outcome */
    if (p->branch == ETCH_BRANCH_AFTER)
        pair = pair_of(p, run);
    return pair ? pair->seq : !outcome ? UINT64_MAX : p->branch == ETCH_BRANCH_AT_LAST ? outcome->last : outcome->first;
}

uint64_t etch_predictor_time(const struct etch_predictor *p, const struct etch_facts *facts, const struct etch_run *run)
{
    const struct order_fact *fact;
    const struct etch_run_visit *visit;
    bool open;

    switch (p->kind) {
    case ETCH_PREDICTOR_BRANCH:
        return branch_time(p, run);
    case ETCH_PREDICTOR_VALUE:
        if (etch_is_relation(p))
            return etch_relation_of(p, facts) ? etch_relation_of(p, facts)->first[p->test - ETCH_VALUE_LESS]
                                              : UINT64_MAX;
        for (size_t i = 0; i < run->accesses.n; i++)
            if (etch_is_value_of(p, &run->accesses.v[i]) && etch_value_passes(p, &run->accesses.v[i]))
                return run->accesses.v[i].seq;
        return UINT64_MAX;
    case ETCH_PREDICTOR_ORIGIN:
        fact = etch_facts_find(p, facts, &open);
        return fact ? run->accesses.v[fact->at[1]].seq : UINT64_MAX;
    default:
        visit = p->n_places && !p->negated ? etch_run_visited(run, p->places[0]) : NULL;
        return visit ? visit->seq : UINT64_MAX;
    }
}

uint64_t etch_run_length(const struct etch_run *run)
{
    uint64_t length = 0;

    for (size_t i = 0; i < run->visits.n; i++)
        length = run->visits.v[i].seq > length ? run->visits.v[i].seq : length;
    for (size_t i = 0; i < run->branches.n; i++)
        length = run->branches.v[i].last > length ? run->branches.v[i].last : length;
    return length;
}
