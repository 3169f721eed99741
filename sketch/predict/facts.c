/* SPDX-License-Identifier: MIT */
/* The facts of one run about the orders of its threads, each once. All predictors are answered from them; see model.h.
 */
#include "sketch/predict/model.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_fact(const struct order_fact *f)
{
    uint32_t flags = (uint32_t)f->alone << 2 | (uint32_t)f->last << 1 | f->proven;
    uint32_t key[6] = {f->variable, f->n, flags, f->places[0], f->places[1], f->places[2]};

    return etch_hash(etch_hash(ETCH_HASH_START, key, sizeof(key)), f->pattern, sizeof(f->pattern));
}

static struct order_fact *same_fact(const struct etch_facts *facts, const struct order_fact *f, uint64_t hash)
{
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&facts->by_fact, hash, &probe)) != ETCH_INDEX_NONE) {
        struct order_fact *known = &facts->orders.v[i];

        if (known->variable == f->variable && known->n == f->n && known->last == f->last &&
            known->proven == f->proven && known->alone == f->alone &&
            memcmp(known->pattern, f->pattern, sizeof(f->pattern)) == 0 &&
            memcmp(known->places, f->places, sizeof(f->places)) == 0)
            return known;
    }
    return NULL;
}

static void add_fact(void *context, const struct etch_pattern *p)
{
    struct etch_facts *facts = context;
    struct order_fact fact = {.n = p->n, .last = p->last, .proven = p->proven, .alone = p->alone}, *known;
    uint64_t hash;

    memcpy(fact.pattern, p->name, sizeof(fact.pattern));
    for (uint32_t i = 0; i < p->n; i++) {
        fact.places[i] = facts->groups.all.v[p->group[i]].place;
        fact.at[i] = p->at[i];
    }
    fact.variable = facts->groups.all.v[p->group[0]].variable;
    fact.seq = facts->found++;
    hash = hash_fact(&fact);
    known = same_fact(facts, &fact, hash);
    if (known)
        *known = fact;
    else
        facts->failed |= !etch_array_push(&facts->orders, fact) ||
                         !etch_index_add(&facts->by_fact, hash, (uint32_t)facts->orders.n - 1);
}

static void add_user(struct etch_facts *facts, const struct etch_access_group *t, bool write)
{
    struct user user = {t->place, t->variable, t->thread, write};
    uint32_t key[4] = {user.place, user.variable, user.thread, write};
    uint64_t hash = etch_hash(ETCH_HASH_START, key, sizeof(key));
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&facts->by_user, hash, &probe)) != ETCH_INDEX_NONE) {
        const struct user *known = &facts->users.v[i];

        if (known->place == user.place && known->variable == user.variable && known->thread == user.thread &&
            known->write == write)
            return;
    }
    facts->failed |=
        !etch_array_push(&facts->users, user) || !etch_index_add(&facts->by_user, hash, (uint32_t)facts->users.n - 1);
}

static void add_hang(void *context, const struct etch_hang *hang)
{
    struct etch_facts *facts = context;

    if (hang->kind == ETCH_HANG_LONG)
        facts->limits.long_rings++;
    else
        facts->failed |= !etch_array_push(&facts->hangs, *hang);
}

static void add_torn_fact(void *context, const struct etch_torn *torn)
{
    struct etch_facts *facts = context;
    struct torn_fact fact = {.proven = torn->proven,
                             .variable = facts->groups.all.v[torn->group[0]].variable,
                             .second = facts->groups.all.v[torn->group[2]].variable};
    size_t probe = 0;
    uint64_t hash;
    uint32_t i;

    for (i = 0; i < 4; i++) {
        const struct etch_access_group *t = &facts->groups.all.v[torn->group[i]];

        fact.places[i] = t->place;
        fact.at[i] = i == 0 || i == 3 ? t->write_at : t->read_at;
    }
    hash = etch_hash(ETCH_HASH_START, fact.places, sizeof(fact.places));
    while ((i = etch_index_next(&facts->by_torn, hash, &probe)) != ETCH_INDEX_NONE)
        if (memcmp(facts->torn.v[i].places, fact.places, sizeof(fact.places)) == 0 &&
            facts->torn.v[i].variable == fact.variable && facts->torn.v[i].second == fact.second) {
            if (fact.proven || !facts->torn.v[i].proven)
                facts->torn.v[i] = fact;
            return;
        }
    facts->failed |=
        !etch_array_push(&facts->torn, fact) || !etch_index_add(&facts->by_torn, hash, (uint32_t)facts->torn.n - 1);
}

static int make(struct etch_facts *facts, const struct etch_run *run, bool early)
{
    if (etch_access_groups_make(&facts->groups, run, early) < 0)
        return -1;
    etch_access_groups_patterns(&facts->groups, run, add_fact, facts);
    facts->limits.unsearched = etch_access_groups_torn(&facts->groups, run, add_torn_fact, facts);
    for (size_t i = 0; i < facts->groups.all.n; i++) {
        const struct etch_access_group *t = &facts->groups.all.v[i];

        if (t->write)
            add_user(facts, t, true);
        else if (t->read)
            add_user(facts, t, false);
    }
    etch_hang_find(run, add_hang, facts);
    facts->failed |= !etch_relations_find(facts, run);
    return facts->failed ? -1 : 0;
}

static void release(struct etch_facts *facts)
{
    etch_array_free(&facts->orders);
    etch_array_free(&facts->users);
    etch_array_free(&facts->hangs);
    etch_array_free(&facts->torn);
    etch_array_free(&facts->relations);
    etch_array_free(&facts->groups.all);
    etch_index_release(&facts->by_fact);
    etch_index_release(&facts->by_user);
    etch_index_release(&facts->by_torn);
    etch_index_release(&facts->by_relation);
    free(facts);
}

/* The accesses of a run do not change once it is built. etch_runs_unify() gives variables other numbers, and then
 * forgets the facts. */
const struct etch_facts *etch_facts_of(const struct etch_run *run, bool early)
{
    struct etch_run *owner = (struct etch_run *)(uintptr_t)run;
    struct etch_facts *facts = run->facts[early];

    if (facts)
        return facts;
    facts = calloc(1, sizeof(*facts));
    if (facts && make(facts, run, early) < 0) {
        release(facts);
        facts = NULL;
    }
    owner->facts[early] = facts;
    owner->facts_made++;
    return facts;
}

struct etch_search_limits etch_predictors_limits(const struct etch_run *run)
{
    const struct etch_facts *facts = etch_facts_of(run, false);

    return facts ? facts->limits : (struct etch_search_limits){0};
}

void etch_run_forget_facts(struct etch_run *run)
{
    for (int early = 0; early < 2; early++) {
        if (run->facts[early])
            release(run->facts[early]);
        run->facts[early] = NULL;
    }
}

static bool same_set(const struct etch_predictor *p, const struct order_fact *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        bool found = false;

        for (uint32_t k = 0; k < p->n_places; k++)
            found |= p->places[k] == f->places[i];
        if (!found)
            return false;
    }
    return f->n == p->n_places;
}

const struct order_fact *etch_facts_find(const struct etch_predictor *p, const struct etch_facts *facts, bool *open)
{
    const struct order_fact *newest = NULL;

    *open = false;
    for (size_t i = 0; i < facts->orders.n; i++) {
        const struct order_fact *f = &facts->orders.v[i];

        if (f->variable != p->variable || f->alone != (p->kind == ETCH_PREDICTOR_ORIGIN))
            continue;
        if (!f->proven) {
            *open |= same_set(p, f);
            continue;
        }
        if (f->n == p->n_places && strcmp(f->pattern, p->pattern) == 0 &&
            memcmp(f->places, p->places, f->n * sizeof(f->places[0])) == 0 && (p->ever || f->last) &&
            (!newest || f->seq > newest->seq))
            newest = f;
    }
    return newest;
}
