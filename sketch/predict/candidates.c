/* SPDX-License-Identifier: MIT */
/* The candidates for predictors: what failing runs did, and what they did not do although other runs did. */
#include "sketch/predict/model.h"

#include <stdio.h>
#include <string.h>

static bool is_same(const struct etch_predictor *a, const struct etch_predictor *b)
{
    return a->kind == b->kind && a->n_places == b->n_places && a->variable == b->variable && a->second == b->second &&
           a->ever == b->ever && a->refill == b->refill && a->torn == b->torn && a->negated == b->negated &&
           a->test == b->test && a->value == b->value && a->write == b->write && a->address == b->address &&
           a->taken == b->taken && a->branch == b->branch && a->before == b->before &&
           a->before_taken == b->before_taken && strcmp(a->pattern, b->pattern) == 0 &&
           memcmp(a->places, b->places, a->n_places * sizeof(a->places[0])) == 0;
}

static uint64_t hash_candidate(const struct etch_predictor *p)
{
    uint64_t key[6] = {(uint64_t)p->kind << 32 | p->variable,
                       p->second,
                       p->address,
                       p->value,
                       p->before << 3 | (uint64_t)p->before_taken << 2 | p->branch,
                       (uint64_t)p->test << 8 | (uint64_t)p->torn << 5 | (uint64_t)p->refill << 4 |
                           (uint64_t)p->write << 3 | (uint64_t)p->ever << 2 | (uint64_t)p->taken << 1 | p->negated};
    uint64_t hash = etch_hash(ETCH_HASH_START, key, sizeof(key));

    hash = etch_hash(hash, p->places, p->n_places * sizeof(p->places[0]));
    return etch_hash(hash, p->pattern, strlen(p->pattern));
}

static bool add(struct search *s, struct etch_predictor candidate)
{
    uint64_t hash = hash_candidate(&candidate);
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&s->known, hash, &probe)) != ETCH_INDEX_NONE)
        if (is_same(&s->found->all.v[i], &candidate))
            return true;
    return etch_array_push(&s->found->all, candidate) && etch_index_add(&s->known, hash, (uint32_t)s->found->all.n - 1);
}

bool etch_is_one_function(const struct search *s, uint32_t a, uint32_t b)
{
    const struct etch_line_place *first = &s->names->places.v[a], *last = &s->names->places.v[b];

    return strcmp(first->function, last->function) == 0 && strcmp(first->file, last->file) == 0;
}

/* ---- How threads met ---- */

static bool add_orders(struct search *s, const struct etch_facts *facts)
{
    for (size_t i = 0; i < facts->orders.n; i++) {
        const struct order_fact *f = &facts->orders.v[i];
        struct etch_predictor p = {.kind = f->n == 3  ? ETCH_PREDICTOR_ATOMICITY
                                           : f->alone ? ETCH_PREDICTOR_ORIGIN
                                                      : ETCH_PREDICTOR_ORDER,
                                   .n_places = f->n,
                                   .second = ETCH_NOWHERE,
                                   .variable = f->variable};

        if (!f->proven || (f->alone && !f->last))
            continue;
        memcpy(p.places, f->places, sizeof(f->places));
        memcpy(p.pattern, f->pattern, sizeof(f->pattern));
        for (p.ever = !f->last;; p.ever = true) {
            if (!add(s, p))
                return false;
            if (p.ever || f->alone)
                break;
        }
    }
    return true;
}

static bool add_torn(struct search *s, const struct etch_facts *failing)
{
    for (size_t i = 0; i < failing->torn.n; i++) {
        const struct torn_fact *f = &failing->torn.v[i];
        struct etch_predictor p = {.kind = ETCH_PREDICTOR_ATOMICITY,
                                   .n_places = 4,
                                   .variable = f->variable,
                                   .second = f->second,
                                   .pattern = "WRRW",
                                   .torn = true};

        memcpy(p.places, f->places, sizeof(f->places));
        if (f->proven && !add(s, p))
            return false;
    }
    return true;
}

static bool add_hangs(struct search *s, const struct etch_facts *facts)
{
    for (size_t i = 0; i < facts->hangs.n; i++) {
        const struct etch_hang *h = &facts->hangs.v[i];
        struct etch_predictor p = {.kind = h->kind == ETCH_HANG_RING ? ETCH_PREDICTOR_LOCK_ORDER : ETCH_PREDICTOR_WAIT,
                                   .n_places = h->n,
                                   .variable = ETCH_NOWHERE,
                                   .second = ETCH_NOWHERE};

        memcpy(p.places, h->places, sizeof(p.places));
        if (!add(s, p))
            return false;
    }
    return true;
}

/* True if a thread other than the writer reads at a place, in the writer's run. */
static bool is_shared(const struct etch_facts *facts, uint32_t place, const struct user *write)
{
    for (size_t i = 0; i < facts->users.n; i++) {
        const struct user *u = &facts->users.v[i];

        if (u->place == place && u->variable == write->variable && u->thread != write->thread)
            return true;
    }
    return false;
}

/* Statements that write a variable which a failing run read, but that had not written it yet in that run. Other runs
 * show that they write it. */
static bool add_too_early(struct search *s, const struct etch_facts *failing)
{
    for (size_t i = 0; i < failing->users.n; i++) {
        const struct user *read = &failing->users.v[i];

        for (size_t r = 0; !read->write && r < s->n; r++) {
            for (size_t k = 0; k < s->facts[r]->users.n; k++) {
                const struct user *write = &s->facts[r]->users.v[k];
                struct etch_predictor p = {.kind = ETCH_PREDICTOR_ORDER,
                                           .n_places = 2,
                                           .variable = read->variable,
                                           .places = {read->place, write->place},
                                           .second = ETCH_NOWHERE,
                                           .pattern = "RW"};

                for (int refill = 0; write->write && write->variable == read->variable && write->place != read->place &&
                                     refill < 2 && is_shared(s->facts[r], read->place, write);
                     refill++) {
                    p.refill = refill;
                    if (!add(s, p))
                        return false;
                }
            }
        }
    }
    return true;
}

/* ---- Values ---- */

/* The values that passing runs had at the same place: the last values, or all. False: there are none. */
static bool passing_range(const struct search *s, const struct etch_predictor *p, int64_t *lo, int64_t *hi)
{
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        const struct etch_run_access *last =
            run->failing ? NULL : etch_run_last_value(run, p->places[0], p->variable, p->write);

        for (const struct etch_run_access *b = run->accesses.v; last && b <= last; b++) {
            int64_t v = etch_signed_value(b->value, b->size);

            if (!etch_is_value_of(p, b))
                continue;
            *lo = any && *lo < v ? *lo : v;
            *hi = any && *hi > v ? *hi : v;
            any = true;
        }
    }
    return any;
}

bool etch_is_address_value(const struct etch_run_access *a)
{
    return a->size == 8 && a->value >> 32 && !(a->value >> 47);
}

static bool add_value(struct search *s, const struct etch_run_access *a, bool fails_here)
{
    struct etch_predictor p = {.kind = ETCH_PREDICTOR_VALUE,
                               .n_places = 1,
                               .places = {a->place},
                               .variable = a->variable,
                               .second = ETCH_NOWHERE,
                               .write = a->write,
                               .ever = fails_here,
                               .size = a->size};
    int64_t v = etch_signed_value(a->value, a->size), lo = 0, hi = 0;
    bool good = true;

    if (etch_is_address_value(a))
        return true;
    if (a->value == 0) {
        p.test = ETCH_VALUE_ZERO;
        good = add(s, p);
    } else {
        p.test = ETCH_VALUE_EQUAL;
        p.value = a->value;
        good = add(s, p);
    }
    p.value = 0;
    if (v < 0 && good) {
        p.test = ETCH_VALUE_NEGATIVE;
        good = add(s, p);
    }
    if (good && passing_range(s, &p, &lo, &hi) && (v < lo || v > hi)) {
        p.test = v < lo ? ETCH_VALUE_BELOW : ETCH_VALUE_ABOVE;
        p.value = (uint64_t)(v < lo ? lo : hi);
        good = add(s, p);
    }
    return good;
}

static bool add_values(struct search *s, const struct etch_run *run)
{
    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];

        /* The values that malloc and free keep in unallocated memory have no meaning for the program. */
        if (a->place != ETCH_NOWHERE && a->variable != ETCH_NOWHERE && a->known && !a->outside &&
            etch_run_last_value(run, a->place, a->variable, a->write) == a &&
            !add_value(s, a, etch_run_fails_at(run, a->place)))
            return false;
    }
    return true;
}

static bool holds_in_passing(const struct search *s, const struct etch_predictor *p)
{
    bool known = false;

    for (size_t i = 0; i < s->n; i++) {
        const struct relation_fact *fact = s->runs[i]->failing ? NULL : etch_relation_of(p, s->facts[i]);

        if (fact && fact->seen >> p->test & 1)
            return true;
        known |= fact != NULL;
    }
    return !known;
}

/* The comparisons that came out in a failing run as in no passing run, in any of its calls. */
static bool add_relations(struct search *s, const struct etch_facts *failing, const struct etch_run *run)
{
    for (size_t i = 0; run->threads.n == 1 && i < failing->relations.n; i++) {
        const struct relation_fact *f = &failing->relations.v[i];
        struct etch_predictor p = {.kind = ETCH_PREDICTOR_VALUE,
                                   .n_places = 1,
                                   .places = {f->place},
                                   .variable = f->variable,
                                   .second = f->other};

        for (int test = ETCH_VALUE_LESS; test <= ETCH_VALUE_GREATER; test++) {
            p.test = (enum etch_value_test)test;
            if (f->seen >> test & 1 && !holds_in_passing(s, &p) && !add(s, p))
                return false;
        }
    }
    return true;
}

/* ---- What ran ---- */

static struct etch_predictor branch_predictor(const struct etch_run_branch *b, enum etch_branch_test test)
{
    return (struct etch_predictor){.kind = ETCH_PREDICTOR_BRANCH,
                                   .branch = test,
                                   .n_places = 1,
                                   .places = {b->place},
                                   .variable = ETCH_NOWHERE,
                                   .second = ETCH_NOWHERE,
                                   .address = b->address,
                                   .taken = b->taken,
                                   .to = b->to,
                                   .before_to = ETCH_NOWHERE};
}

/* True if a function was still running when a run failed: how its branches would have gone on is not known. */
static bool is_unfinished(const struct etch_run *run, uint32_t place)
{
    const struct etch_line_place *places = run->names ? run->names->places.v : NULL;

    for (size_t i = 0; places && i < run->threads.n; i++)
        for (size_t k = 0; k < run->threads.v[i].stack.n; k++)
            if (strcmp(places[run->threads.v[i].stack.v[k]].function, places[place].function) == 0)
                return true;
    return false;
}

/* The outcomes that a branch had in a failing run. The branch of the failing statement is the failure itself. */
static bool add_outcomes(struct search *s, const struct etch_run *run)
{
    for (size_t i = 0; i < run->branches.n; i++) {
        const struct etch_run_branch *b = &run->branches.v[i];

        if (etch_run_fails_at(run, b->place))
            continue;
        if (!add(s, branch_predictor(b, ETCH_BRANCH_EVER)) ||
            (b->at_last && run->threads.n == 1 && !is_unfinished(run, b->place) &&
             !add(s, branch_predictor(b, ETCH_BRANCH_AT_LAST))))
            return false;
    }
    return true;
}

/* True if a predictor holds in no passing run, and in nearly all failing runs. */
static bool separates(const struct search *s, const struct etch_predictor *p)
{
    unsigned failing = 0, without = 0;

    for (size_t i = 0; i < s->n; i++) {
        enum etch_truth truth = etch_branch_holds(p, s->runs[i]);

        if (!s->runs[i]->failing && truth == ETCH_TRUE)
            return false;
        failing += s->runs[i]->failing;
        without += s->runs[i]->failing && truth != ETCH_TRUE;
    }
    return without * 10 <= failing;
}

/* Outcomes in the state that other branches had left: many pairs, of which only those are taken that separate failing
 * from passing runs. Across threads, no such state is known. */
static bool add_states(struct search *s, const struct etch_run *run)
{
    for (size_t i = 0; run->threads.n == 1 && i < run->branch_pairs.n; i++) {
        const struct etch_run_branch *first = &run->branches.v[run->branch_pairs.v[i].first],
                                     *second = &run->branches.v[run->branch_pairs.v[i].second];
        struct etch_predictor p = branch_predictor(second, ETCH_BRANCH_AFTER);

        p.n_places = 2;
        p.places[0] = first->place;
        p.places[1] = second->place;
        p.before = first->address;
        p.before_taken = first->taken;
        p.before_to = first->to;
        if (!etch_run_fails_at(run, second->place) && separates(s, &p) && !add(s, p))
            return false;
    }
    return true;
}

/* The outcomes that a branch of a failing run never had, although it had them in passing runs. With threads, a branch
 * may lack an outcome because another thread came first. */
static bool add_absent_outcomes(struct search *s, const struct etch_run *run)
{
    for (size_t r = 0; run->threads.n == 1 && r < s->n; r++) {
        for (size_t i = 0; !s->runs[r]->failing && i < s->runs[r]->branches.n; i++) {
            struct etch_predictor p = branch_predictor(&s->runs[r]->branches.v[i], ETCH_BRANCH_NEVER);

            if (!etch_run_fails_at(run, p.places[0]) && !is_unfinished(run, p.places[0]) &&
                etch_branch_holds(&p, run) == ETCH_TRUE && !add(s, p))
                return false;
        }
    }
    return true;
}

static bool add_flow(struct search *s, const struct etch_run *run)
{
    if (!add_outcomes(s, run) || !add_absent_outcomes(s, run))
        return false;
    for (size_t i = 0; i < run->visits.n; i++) {
        struct etch_predictor p = {.kind = ETCH_PREDICTOR_EXECUTED,
                                   .n_places = 1,
                                   .places = {run->visits.v[i].place},
                                   .variable = ETCH_NOWHERE,
                                   .second = ETCH_NOWHERE};

        if (!etch_run_fails_at(run, p.places[0]) && !add(s, p))
            return false;
    }
    return true;
}

/* True if a statement comes after the failing statement in a passing run. Because of the failure it did not run. */
static bool comes_behind(const struct search *s, const struct etch_run *failing, uint32_t place)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];

        for (size_t k = 0; !run->failing && k < run->visits.n; k++) {
            const struct etch_run_visit *v = &run->visits.v[k], *w;

            if (etch_run_fails_at(failing, v->place) && (w = etch_run_visited_by(run, v->thread, place)) &&
                w->seq > v->seq)
                return true;
        }
    }
    return false;
}

/* Adds the statements of the slice that passing runs executed and this run did not. */
static bool add_missing(struct search *s, const struct etch_run *run)
{
    for (uint32_t place = 0; place < s->names->places.n; place++) {
        struct etch_predictor p = {.kind = ETCH_PREDICTOR_EXECUTED,
                                   .n_places = 1,
                                   .places = {place},
                                   .variable = ETCH_NOWHERE,
                                   .second = ETCH_NOWHERE,
                                   .negated = true};

        if (s->names->places.v[place].statement && etch_did_execute(run, place) == ETCH_FALSE &&
            !comes_behind(s, run, place) && !add(s, p))
            return false;
    }
    return true;
}

/* ---- All of them ---- */

#define STATES_OF 2 /* failing runs: a pair that nearly all have is in one of two */

bool etch_candidates_find(struct search *s)
{
    unsigned failing = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];

        if (run->failing && failing++ < STATES_OF && !add_states(s, run))
            return false;
        if (run->failing && !(add_hangs(s, s->facts[i]) && add_torn(s, s->facts[i]) && add_orders(s, s->facts[i]) &&
                              add_too_early(s, s->facts[i]) && add_values(s, run) &&
                              add_relations(s, s->facts[i], run) && add_flow(s, run) && add_missing(s, run)))
            return false;
    }
    return true;
}

bool etch_candidates_find_orders(struct search *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing && !(add_orders(s, s->facts[i]) && add_too_early(s, s->facts[i])))
            return false;
    return true;
}

/* ---- Pairs of candidates ---- */

static bool is_half(const struct etch_predictor *p, const char *pattern)
{
    if (p->refill && p->passing_true)
        return false; /* else the other half alone would say it */
    return p->kind == ETCH_PREDICTOR_ORDER && !p->ever && strcmp(p->pattern, pattern) == 0 && p->failing_true &&
           p->failing_true == p->failing;
}

/* Combines the order of a write before a read with the order of a read before a later write. One variable: WRW, whose
 * last write may not have come. Two variables: WRRW. One function writes both variables in turn. Another function reads
 * both, and sees one new and one old. */
static bool add_pair(struct search *s, struct etch_predictor first, struct etch_predictor second)
{
    bool one = first.variable == second.variable;
    struct etch_predictor p = {.kind = ETCH_PREDICTOR_ATOMICITY,
                               .n_places = one ? 3 : 4,
                               .places = {first.places[0], first.places[1], second.places[0], second.places[1]},
                               .variable = first.variable,
                               .second = one ? ETCH_NOWHERE : second.variable};

    if (!is_half(&first, "WR") || !is_half(&second, "RW") || first.places[0] == second.places[1] ||
        !etch_is_one_function(s, first.places[0], second.places[1]) || (one && first.places[1] != second.places[0]) ||
        !etch_is_one_function(s, first.places[1], second.places[0]))
        return true;
    p.refill = second.refill;
    if (one)
        p.places[2] = second.places[1];
    snprintf(p.pattern, sizeof(p.pattern), "%s", one ? "WRW" : "WRRW");
    return add(s, p);
}

bool etch_candidates_pair(struct search *s)
{
    size_t n = s->found->all.n;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (!add_pair(s, s->found->all.v[i], s->found->all.v[k]))
                return false;
    return true;
}
