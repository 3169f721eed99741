/* SPDX-License-Identifier: MIT */
/* How two numbers of one call compare: at each access, with the newest values of the call's other variables. A number
 * that is compared with nothing in the program may yet have to be smaller than another. */
#include "sketch/predict/model.h"

#include <string.h>

#define VARIABLES 16u /* of a call; its other variables are not compared */
#define LEAST_SIZE 4u /* bytes: characters and flags are no amounts */

struct call {
    uint32_t thread, number, n;
    struct {
        uint32_t variable;
        int64_t value;
    } newest[VARIABLES];
};

struct calls {
    ETCH_ARRAY(struct call) all;
    struct etch_index by_number;
};

static struct call *call_of(struct calls *calls, const struct etch_run_access *a)
{
    uint64_t hash = etch_hash(a->thread, &a->call, sizeof(a->call));
    const struct call fresh = {.thread = a->thread, .number = a->call};
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&calls->by_number, hash, &probe)) != ETCH_INDEX_NONE)
        if (calls->all.v[i].thread == a->thread && calls->all.v[i].number == a->call)
            return &calls->all.v[i];
    if (!etch_array_push(&calls->all, fresh) || !etch_index_add(&calls->by_number, hash, (uint32_t)calls->all.n - 1))
        return NULL;
    return &calls->all.v[calls->all.n - 1];
}

static uint64_t hash_of(uint32_t place, uint32_t variable, uint32_t other)
{
    uint32_t key[3] = {place, variable, other};

    return etch_hash(ETCH_HASH_START, key, sizeof(key));
}

static uint32_t find(const struct etch_facts *facts, uint32_t place, uint32_t variable, uint32_t other)
{
    uint64_t hash = hash_of(place, variable, other);
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&facts->by_relation, hash, &probe)) != ETCH_INDEX_NONE)
        if (facts->relations.v[i].place == place && facts->relations.v[i].variable == variable &&
            facts->relations.v[i].other == other)
            return i;
    return ETCH_INDEX_NONE;
}

static bool note(struct etch_facts *facts, const struct etch_run_access *a, int64_t value, uint32_t other,
                 int64_t others)
{
    enum etch_value_test test = value < others   ? ETCH_VALUE_LESS
                                : value > others ? ETCH_VALUE_GREATER
                                                 : ETCH_VALUE_SAME;
    uint32_t bit = 1u << test, i = find(facts, a->place, a->variable, other);
    struct relation_fact *fact;

    if (i == ETCH_INDEX_NONE) {
        const struct relation_fact fresh = {.place = a->place, .variable = a->variable, .other = other};

        i = (uint32_t)facts->relations.n;
        if (!etch_array_push(&facts->relations, fresh) ||
            !etch_index_add(&facts->by_relation, hash_of(a->place, a->variable, other), i))
            return false;
    }
    fact = &facts->relations.v[i];
    if (!(fact->seen & bit))
        fact->first[test - ETCH_VALUE_LESS] = a->seq;
    fact->seen |= bit;
    return true;
}

static bool is_amount(const struct etch_run_access *a)
{
    return a->known && a->place != ETCH_NOWHERE && a->variable != ETCH_NOWHERE && a->call && !a->outside &&
           a->size >= LEAST_SIZE && a->size <= 8 && !etch_is_address_value(a);
}

static bool take(struct etch_facts *facts, struct calls *calls, const struct etch_run_access *a)
{
    struct call *call = call_of(calls, a);
    int64_t value = etch_signed_value(a->value, a->size);
    uint32_t own;

    if (!call)
        return false;
    own = call->n;
    for (uint32_t i = 0; i < call->n; i++) {
        if (call->newest[i].variable == a->variable)
            own = i;
        else if (!note(facts, a, value, call->newest[i].variable, call->newest[i].value))
            return false;
    }
    if (own == VARIABLES)
        return true;
    call->newest[own].variable = a->variable;
    call->newest[own].value = value;
    call->n += own == call->n;
    return true;
}

bool etch_relations_find(struct etch_facts *facts, const struct etch_run *run)
{
    struct calls calls = {0};
    bool good = true;

    for (size_t i = 0; good && i < run->accesses.n; i++)
        if (is_amount(&run->accesses.v[i]))
            good = take(facts, &calls, &run->accesses.v[i]);
    etch_array_free(&calls.all);
    etch_index_release(&calls.by_number);
    return good;
}

const struct relation_fact *etch_relation_of(const struct etch_predictor *p, const struct etch_facts *facts)
{
    uint32_t i = find(facts, p->places[0], p->variable, p->second);

    return i == ETCH_INDEX_NONE ? NULL : &facts->relations.v[i];
}

bool etch_is_relation(const struct etch_predictor *p)
{
    return p->kind == ETCH_PREDICTOR_VALUE && p->test >= ETCH_VALUE_LESS;
}

enum etch_truth etch_relation_holds(const struct etch_predictor *p, const struct etch_facts *facts,
                                    const struct etch_run *run)
{
    const struct relation_fact *fact = etch_relation_of(p, facts);

    if (fact)
        return fact->seen >> p->test & 1 ? ETCH_TRUE : ETCH_FALSE;
    return etch_did_execute(run, p->places[0]) == ETCH_FALSE ? ETCH_FALSE : ETCH_UNKNOWN;
}
