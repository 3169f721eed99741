/* SPDX-License-Identifier: MIT */
/* The ranking of predictors: by their numbers and, among equal numbers, by their kind. */
#include "sketch/predict/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_places(const struct etch_predictor *a, const struct etch_predictor *b, const struct etch_names *names)
{
    for (uint32_t i = 0; i < a->n_places && i < b->n_places; i++) {
        const struct etch_line_place *x = &names->places.v[a->places[i]], *y = &names->places.v[b->places[i]];
        int files = strcmp(x->file, y->file);

        if (files || x->line != y->line)
            return files ? files : x->line < y->line ? -1 : 1;
    }
    return a->n_places < b->n_places ? -1 : a->n_places > b->n_places;
}

/* The origin of a value explains most if the write went astray. A write by a statement that is meant to write there
 * follows from the branches before it. A value that another owner of the memory left has no writer. */
static int weight_of_origin(const struct etch_predictor *p)
{
    if (p->only_there)
        return 9;
    if (p->left_over)
        return 8;
    return p->stray ? 2 : p->proper ? 6 : 4;
}

#define ESTABLISHED 0.6 /* the least lower bound of F */

/* A program of one thread runs as a chain: what deviates first leads to all that deviates later. So the outcomes of
 * branches and the values that mean something in themselves are equals, and their times rank them. Before them comes a
 * 0 that is fatal at the failing statement: the reason why it died. Behind them: conditions of two outcomes, absent
 * outcomes and the last check; what a few runs show; numbers that fit only these runs; and what says no more than that
 * its statement ran. */
static int weight_of_sequential(const struct etch_predictor *p)
{
    bool number = p->kind == ETCH_PREDICTOR_VALUE && p->test != ETCH_VALUE_ZERO && p->test != ETCH_VALUE_NEGATIVE &&
                  !etch_is_relation(p);

    if (p->kind == ETCH_PREDICTOR_ORIGIN && p->stray && !p->only_there)
        return 2;
    if (p->fatal)
        return 3;
    if (p->kind == ETCH_PREDICTOR_EXECUTED || p->increase <= 0 || p->left_over || p->only_there)
        return 9;
    if (number || p->unwritten)
        return 8;
    if (p->kind != ETCH_PREDICTOR_BRANCH && p->f_lo < ESTABLISHED)
        return 7; /* a branch is known in all runs, a watch in a few of them */
    if (p->kind != ETCH_PREDICTOR_BRANCH)
        return p->kind == ETCH_PREDICTOR_ORIGIN || etch_is_relation(p) ? 5 : 4;
    return p->guards || p->branch != ETCH_BRANCH_EVER ? 5 : 4; /* the last check only says that it failed */
}

/* Ranks predictors of equal numbers by kind. From first to last: rings of locks and waits; orders of threads; a value
 * of zero or below; a stray write; a branch, which is a test of the program; a number that fits only these runs; a
 * value without a writer. A thread that waits for its own lock is the failure, not its cause. */
static int weight(const struct etch_predictor *p)
{
    if (p->sequential && !etch_predictor_is_threaded(p))
        return weight_of_sequential(p);
    switch (p->kind) {
    case ETCH_PREDICTOR_LOCK_ORDER:
        return p->n_places > 2 ? 0 : 2;
    case ETCH_PREDICTOR_WAIT:
        return p->n_places > 1 ? 0 : 2;
    case ETCH_PREDICTOR_ATOMICITY:
    case ETCH_PREDICTOR_ORDER:
        return 1;
    case ETCH_PREDICTOR_VALUE:
        return p->unwritten ? 8 : p->test == ETCH_VALUE_ZERO || p->test == ETCH_VALUE_NEGATIVE ? 3 : 7;
    case ETCH_PREDICTOR_ORIGIN:
        return weight_of_origin(p);
    case ETCH_PREDICTOR_BRANCH:
        return 5;
    default:
        return 9;
    }
}

/* A predictor that holds in no passing run and in at least 90 % of the failing runs counts as perfect: a watchpoint hit
 * can arrive late. */
static double standing(const struct etch_predictor *p)
{
    return p->f > 0 && !p->passing_true && p->recall >= 0.9 ? 1 : p->f;
}

/* Best first. Equal numbers are ranked by content: orders of threads before their consequences, statements near the
 * failure before distant ones, specific predictors before general ones. */
static int by_rank(const void *x, const void *y, void *context)
{
    const struct etch_predictor *a = x, *b = y;
    const struct etch_names *names = context;
    int places;

    if (fabs(standing(a) - standing(b)) > 1e-12)
        return standing(a) > standing(b) ? -1 : 1;
    if (weight(a) != weight(b))
        return weight(a) < weight(b) ? -1 : 1;
    if (a->sequential && b->sequential && fabs(a->position - b->position) > 1e-9)
        return a->position < b->position ? -1 : 1;
    if (a->first_symptom != b->first_symptom)
        return a->first_symptom ? -1 : 1;
    /* An atomicity that was meant to hold says more than an order. Otherwise the order of two statements is enough.
     */
    if (a->guarded != b->guarded)
        return a->guarded ? -1 : 1;
    if (a->constant_order != b->constant_order)
        return a->constant_order ? 1 : -1;
    if (a->off_path != b->off_path)
        return a->off_path ? 1 : -1;
    if (a->early != b->early)
        return a->early ? 1 : -1;
    if (fabs(a->f - b->f) > 1e-12)
        return a->f > b->f ? -1 : 1;
    if (a->failing + a->passing != b->failing + b->passing)
        return a->failing + a->passing > b->failing + b->passing ? -1 : 1;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind > b->kind ? -1 : 1; /* two statements say it as well as three */
    if (a->spread != b->spread)
        return a->spread < b->spread ? -1 : 1;
    if (a->ever != b->ever)
        return a->ever ? 1 : -1;
    if (a->refill != b->refill)
        return a->refill ? 1 : -1;
    if (a->torn != b->torn)
        return a->torn ? -1 : 1;
    if (a->negated != b->negated)
        return a->negated ? 1 : -1;
    if (a->test != b->test)
        return a->test < b->test ? -1 : 1;
    places = by_places(a, b, names);
    if (places)
        return places;
    if (a->variable != b->variable && a->variable != ETCH_NOWHERE && b->variable != ETCH_NOWHERE)
        return strcmp(names->variables.v[a->variable], names->variables.v[b->variable]);
    places = strcmp(a->pattern, b->pattern);
    if (places)
        return places;
    if (a->second != b->second && a->second != ETCH_NOWHERE && b->second != ETCH_NOWHERE)
        return strcmp(names->variables.v[a->second], names->variables.v[b->second]);
    if (a->write != b->write)
        return a->write ? 1 : -1;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->taken != b->taken)
        return a->taken ? -1 : 1;
    if (a->branch != b->branch)
        return a->branch < b->branch ? -1 : 1;
    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    if (a->before_taken != b->before_taken)
        return a->before_taken ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

void etch_predictors_rank(struct etch_predictors *predictors, const struct etch_names *names)
{
    if (predictors->all.n)
        qsort_r(predictors->all.v, predictors->all.n, sizeof(*predictors->all.v), by_rank, (void *)(uintptr_t)names);
}
