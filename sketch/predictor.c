/* SPDX-License-Identifier: MIT */
/* Predictors: found in the failing runs, judged over all; see predictor.h. */
#include "sketch/predictor.h"
#include "sketch/hang.h"
#include "sketch/interleave.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TORN_MAX 256u        /* pairs of variables seen torn in one run, each once */
#define NOTICED_ENOUGH 0.999 /* F of what was before the program noticed; less is not worth to be put first */

/* ---- What a run says of orders, once for all questions ---- */

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

/* A statement that reads or writes a variable in a thread. */
struct user {
    uint32_t place, variable, thread;
    bool write;
};

struct facts {
    ETCH_ARRAY(struct order_fact) orders; /* each once, of its newest time */
    ETCH_ARRAY(struct user) users;        /* each once */
    ETCH_ARRAY(struct etch_hang) hangs;
    ETCH_ARRAY(struct torn_fact) torn;
    struct etch_index by_fact, by_user;
    struct etch_turns turns;
    size_t found;
    bool failed;
};

static uint64_t hash_fact(const struct order_fact *f)
{
    uint32_t flags = (uint32_t)f->alone << 2 | (uint32_t)f->last << 1 | f->proven;
    uint32_t key[6] = {f->variable, f->n, flags, f->places[0], f->places[1], f->places[2]};

    return etch_hash(etch_hash(ETCH_HASH_START, key, sizeof(key)), f->pattern, sizeof(f->pattern));
}

static struct order_fact *same_fact(const struct facts *facts, const struct order_fact *f, uint64_t hash)
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
    struct facts *facts = context;
    struct order_fact fact = {.n = p->n, .last = p->last, .proven = p->proven, .alone = p->alone}, *known;
    uint64_t hash;

    memcpy(fact.pattern, p->name, sizeof(fact.pattern));
    for (uint32_t i = 0; i < p->n; i++) {
        fact.places[i] = facts->turns.all.v[p->turn[i]].place;
        fact.at[i] = p->at[i];
    }
    fact.variable = facts->turns.all.v[p->turn[0]].variable;
    fact.seq = facts->found++;
    hash = hash_fact(&fact);
    known = same_fact(facts, &fact, hash);
    if (known)
        *known = fact;
    else
        facts->failed |= !etch_array_push(&facts->orders, fact) ||
                         !etch_index_add(&facts->by_fact, hash, (uint32_t)facts->orders.n - 1);
}

static void add_user(struct facts *facts, const struct etch_turn *t, bool write)
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
    struct facts *facts = context;

    facts->failed |= !etch_array_push(&facts->hangs, *hang);
}

static void add_torn_fact(void *context, const struct etch_torn *torn)
{
    struct facts *facts = context;
    struct torn_fact fact = {.proven = torn->proven,
                             .variable = facts->turns.all.v[torn->turn[0]].variable,
                             .second = facts->turns.all.v[torn->turn[2]].variable};

    for (uint32_t i = 0; i < 4; i++) {
        const struct etch_turn *t = &facts->turns.all.v[torn->turn[i]];

        fact.places[i] = t->place;
        fact.at[i] = i == 0 || i == 3 ? t->write_at : t->read_at;
    }
    for (size_t i = 0; i < facts->torn.n; i++)
        if (memcmp(facts->torn.v[i].places, fact.places, sizeof(fact.places)) == 0 &&
            facts->torn.v[i].variable == fact.variable && facts->torn.v[i].second == fact.second) {
            if (fact.proven || !facts->torn.v[i].proven)
                facts->torn.v[i] = fact;
            return;
        }
    facts->failed |= facts->torn.n < TORN_MAX && !etch_array_push(&facts->torn, fact);
}

static int make_facts(struct facts *facts, const struct etch_run *run, bool early)
{
    if (etch_turns_make(&facts->turns, run, early) < 0)
        return -1;
    etch_turns_patterns(&facts->turns, run, add_fact, facts);
    etch_turns_torn(&facts->turns, run, add_torn_fact, facts);
    for (size_t i = 0; i < facts->turns.all.n; i++) {
        const struct etch_turn *t = &facts->turns.all.v[i];

        if (t->write)
            add_user(facts, t, true);
        else if (t->read)
            add_user(facts, t, false);
    }
    etch_hang_find(run, add_hang, facts);
    return facts->failed ? -1 : 0;
}

static void release_facts(struct facts *facts)
{
    etch_array_free(&facts->orders);
    etch_array_free(&facts->users);
    etch_array_free(&facts->hangs);
    etch_array_free(&facts->torn);
    etch_array_free(&facts->turns.all);
    etch_index_release(&facts->by_fact);
    etch_index_release(&facts->by_user);
}

/* ---- Truth ---- */

static bool executed(const struct etch_run *run, uint32_t place)
{
    return etch_run_visited(run, place) || etch_run_accessed(run, place);
}

/* That it did not run is known only where all that ran is: of statements of the slice. */
static enum etch_truth did_execute(const struct etch_run *run, uint32_t place)
{
    if (executed(run, place))
        return ETCH_TRUE;
    if (run->names && !run->names->places.v[place].statement)
        return ETCH_UNKNOWN;
    return run->flow && !run->lost && !etch_run_may_have(run, place) ? ETCH_FALSE : ETCH_UNKNOWN;
}

static bool is_watched(const struct etch_run *run, uint32_t variable)
{
    for (size_t i = 0; i < run->watched.n; i++)
        if (run->watched.v[i] == variable)
            return true;
    return false;
}

static bool is_sited(const struct etch_run *run, uint32_t variable)
{
    for (size_t i = 0; i < run->sited.n; i++)
        if (run->sited.v[i] == variable)
            return true;
    return false;
}

/* The access to a variable in a failing run's last turn at a place. What was seen of other objects there says nothing
 * of the one that it failed with. NULL: it was not seen. */
static const struct etch_run_access *last_turn(const struct etch_run *run, const struct etch_run_visit *last,
                                               uint32_t variable)
{
    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];

        if (a->thread == last->thread && a->place == last->place && a->variable == variable &&
            (!a->nth || a->nth == last->count))
            return a;
    }
    return NULL;
}

/* Whether that turn, or with `before` what was done to its object before, was not seen: no debug register was set on it
 * then. */
static bool is_unseen(const struct etch_run *run, uint32_t place, uint32_t variable, bool before)
{
    const struct etch_run_visit *last;
    const struct etch_run_access *a;

    if (!run->failing || !run->flow || !is_sited(run, variable))
        return false;
    last = etch_run_visited_by(run, run->failing_thread, place);
    if (!last)
        last = etch_run_visited(run, place);
    a = last ? last_turn(run, last, variable) : NULL;
    if (!a)
        return last != NULL;
    for (const struct etch_run_access *earlier = run->accesses.v; before && earlier < a; earlier++)
        before = earlier->object != a->object || a->object == ETCH_NOWHERE;
    return before && a->object != ETCH_NOWHERE;
}

/* Whether that a statement had not written yet is not known: it ran, perhaps before a debug register was set. */
static bool may_be_written(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run,
                           const struct etch_turn *read)
{
    if (!run->flow || !is_sited(run, p->variable) || did_execute(run, p->places[1]) == ETCH_FALSE)
        return false;
    for (size_t i = 0; i < facts->turns.all.n; i++) {
        const struct etch_turn *t = &facts->turns.all.v[i];

        if (t->place == p->places[1] && t->object == read->object && t->write)
            return false;
    }
    return true;
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

static const struct order_fact *find_fact(const struct etch_predictor *p, const struct facts *facts, bool *open)
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

static const struct etch_turn *last_read(const struct etch_predictor *p, const struct facts *facts)
{
    const struct etch_turn *read = NULL;

    for (size_t i = 0; i < facts->turns.all.n; i++) {
        const struct etch_turn *t = &facts->turns.all.v[i];

        if (t->variable == p->variable && t->place == p->places[0] && t->read && !t->write &&
            (!read || t->first > read->first))
            read = t;
    }
    return read;
}

/* RW: the last read by the first statement came when the second had not yet written: it is behind it, or never ran. */
static const struct etch_turn *read_too_early(const struct etch_predictor *p, const struct facts *facts,
                                              const struct etch_run *run)
{
    const struct etch_turn *read = last_read(p, facts);

    for (size_t i = 0; read && i < facts->turns.all.n; i++) {
        const struct etch_turn *t = &facts->turns.all.v[i];

        if (t->place != p->places[1] || t->object != read->object || !t->write)
            continue;
        if (t->thread == read->thread ||
            etch_run_compare(run, &run->accesses.v[read->last], &run->accesses.v[t->first]) >= 0)
            return NULL;
    }
    return read;
}

/* Whether a read comes before a write that is to refill what it reads: none by that statement since the read before. */
static bool is_unfilled(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run, size_t i)
{
    const struct etch_turn *read = &facts->turns.all.v[i];

    for (size_t k = i; k-- > 0 && facts->turns.all.v[k].object == read->object;) {
        const struct etch_turn *t = &facts->turns.all.v[k];

        if (t->place == p->places[0] && t->read)
            return true;
        if (t->place == p->places[1] && t->write)
            return false;
    }
    for (size_t k = i + 1; k < facts->turns.all.n && facts->turns.all.v[k].object == read->object; k++)
        if (facts->turns.all.v[k].place == p->places[1] && facts->turns.all.v[k].write)
            return etch_run_compare(run, &run->accesses.v[read->read_at],
                                    &run->accesses.v[facts->turns.all.v[k].write_at]) < 0;
    return true;
}

/* Of a run that failed its last read counts, of one that passed each. */
static enum etch_truth refill_holds(const struct etch_predictor *p, const struct facts *facts,
                                    const struct etch_run *run)
{
    const struct etch_turn *last = NULL;
    bool any = false, unfilled = false;

    for (size_t i = 0; i < facts->turns.all.n; i++) {
        const struct etch_turn *t = &facts->turns.all.v[i];
        bool here;

        if (t->place != p->places[0] || t->variable != p->variable || !t->read || t->write)
            continue;
        here = is_unfilled(p, facts, run, i);
        any |= here;
        if (!last || t->first > last->first) {
            last = t;
            unfilled = here;
        }
    }
    if (!last || !is_watched(run, p->variable) || !run->order || is_unseen(run, p->places[0], p->variable, false))
        return did_execute(run, p->places[0]) == ETCH_FALSE ? ETCH_FALSE : ETCH_UNKNOWN;
    return (run->failing ? unfilled : any) ? ETCH_TRUE : ETCH_FALSE;
}

static enum etch_truth order_holds(const struct etch_predictor *p, const struct facts *facts,
                                   const struct etch_run *run)
{
    bool rw = strcmp(p->pattern, "RW") == 0, open, incomplete = false;
    const struct etch_turn *early;

    if (p->refill)
        return refill_holds(p, facts, run);
    if (find_fact(p, facts, &open))
        return ETCH_TRUE;
    if (open)
        return ETCH_UNKNOWN;
    for (uint32_t i = 0; i < p->n_places; i++) {
        enum etch_truth truth = did_execute(run, p->places[i]);

        if (truth == ETCH_FALSE && !(rw && i == 1))
            return ETCH_FALSE;
        incomplete |= truth == ETCH_UNKNOWN && run->flow && run->lost;
    }
    if (incomplete || !is_watched(run, p->variable) || !run->order ||
        (!p->ever && is_unseen(run, p->places[rw ? 0 : p->n_places - 1], p->variable, !rw)))
        return ETCH_UNKNOWN;
    early = rw && !p->ever ? read_too_early(p, facts, run) : NULL;
    if (early && may_be_written(p, facts, run, early))
        return ETCH_UNKNOWN;
    return early ? ETCH_TRUE : ETCH_FALSE;
}

/* The two orders of which WRW, or WRRW of two variables, is made: the last write may be one that had not run. */
static void take_halves(const struct etch_predictor *p, struct etch_predictor halves[2])
{
    for (int i = 0; i < 2; i++) {
        halves[i] = *p;
        halves[i].kind = ETCH_PREDICTOR_ORDER;
        halves[i].n_places = 2;
        halves[i].refill = p->refill && i;
        snprintf(halves[i].pattern, sizeof(halves[i].pattern), "%s", i ? "RW" : "WR");
    }
    memcpy(halves[1].places, p->places + p->n_places - 2, 2 * sizeof(p->places[0]));
    if (p->n_places == 4)
        halves[1].variable = p->second;
}

static bool has_halves(const struct etch_predictor *p)
{
    return p->n_places == 4 || strcmp(p->pattern, "WRW") == 0;
}

static enum etch_truth both_hold(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run)
{
    struct etch_predictor halves[2];
    enum etch_truth first, second;

    take_halves(p, halves);
    first = order_holds(&halves[0], facts, run);
    second = order_holds(&halves[1], facts, run);
    if (first == ETCH_FALSE || second == ETCH_FALSE)
        return ETCH_FALSE;
    return first == ETCH_TRUE && second == ETCH_TRUE ? ETCH_TRUE : ETCH_UNKNOWN;
}

static const struct torn_fact *find_torn(const struct etch_predictor *p, const struct facts *facts)
{
    for (size_t i = 0; i < facts->torn.n; i++) {
        const struct torn_fact *f = &facts->torn.v[i];

        if (f->variable == p->variable && f->second == p->second &&
            memcmp(f->places, p->places, sizeof(f->places)) == 0)
            return f;
    }
    return NULL;
}

static enum etch_truth torn_holds(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run)
{
    const struct torn_fact *f = find_torn(p, facts);

    if (f)
        return f->proven ? ETCH_TRUE : ETCH_UNKNOWN;
    for (uint32_t i = 0; i < 4; i++)
        if (did_execute(run, p->places[i]) == ETCH_FALSE)
            return ETCH_FALSE;
    if (is_unseen(run, p->places[1], p->variable, false) || is_unseen(run, p->places[2], p->second, false))
        return ETCH_UNKNOWN;
    return is_watched(run, p->variable) && is_watched(run, p->second) && run->order ? ETCH_FALSE : ETCH_UNKNOWN;
}

static enum etch_truth hang_holds(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run)
{
    for (size_t i = 0; i < facts->hangs.n; i++) {
        const struct etch_hang *h = &facts->hangs.v[i];

        if ((h->kind == ETCH_HANG_RING) == (p->kind == ETCH_PREDICTOR_LOCK_ORDER) && h->n == p->n_places &&
            memcmp(h->places, p->places, h->n * sizeof(h->places[0])) == 0)
            return ETCH_TRUE;
    }
    return run->failing && !run->synced ? ETCH_UNKNOWN : ETCH_FALSE;
}

static int64_t signed_value(uint64_t value, uint32_t size)
{
    unsigned unused = size < 8 ? 64 - 8 * size : 0;

    return (int64_t)(value << unused) >> unused;
}

static bool value_passes(const struct etch_predictor *p, const struct etch_run_access *a)
{
    switch (p->test) {
    case ETCH_VALUE_ZERO:
        return a->value == 0;
    case ETCH_VALUE_EQUAL:
        return a->value == p->value;
    case ETCH_VALUE_NEGATIVE:
        return signed_value(a->value, a->size) < 0;
    case ETCH_VALUE_BELOW:
        return signed_value(a->value, a->size) < (int64_t)p->value;
    case ETCH_VALUE_ABOVE:
        return signed_value(a->value, a->size) > (int64_t)p->value;
    }
    return false;
}

static bool is_value_of(const struct etch_predictor *p, const struct etch_run_access *a)
{
    return a->place == p->places[0] && a->variable == p->variable && a->known && a->write == p->write;
}

/* A run that failed stopped there: the last time is the one that counts. One that passed went through each time. */
static bool ever_passes(const struct etch_predictor *p, const struct etch_run *run)
{
    for (size_t i = 0; i < run->accesses.n; i++)
        if (is_value_of(p, &run->accesses.v[i]) && value_passes(p, &run->accesses.v[i]))
            return true;
    return false;
}

/* The same as it stood whenever the run went through where others fail. */
static bool passes_at_chance(const struct etch_predictor *p, const struct etch_run *run)
{
    bool holds_now = false;
    size_t chance = 0;

    for (size_t i = 0; i < run->accesses.n && chance < run->chances.n; i++) {
        if (is_value_of(p, &run->accesses.v[i]))
            holds_now = value_passes(p, &run->accesses.v[i]);
        if (i != run->chances.v[chance])
            continue;
        if (holds_now)
            return true;
        chance++;
    }
    return false;
}

static enum etch_truth value_holds(const struct etch_predictor *p, const struct etch_run *run)
{
    const struct etch_run_access *a = etch_run_last_value(run, p->places[0], p->variable, p->write);

    if (a && !run->failing && (p->ever || !run->chances.n))
        return ever_passes(p, run) ? ETCH_TRUE : ETCH_FALSE;
    if (a && !run->failing)
        return passes_at_chance(p, run) ? ETCH_TRUE : ETCH_FALSE;
    if (a && !is_unseen(run, p->places[0], p->variable, false))
        return value_passes(p, a) ? ETCH_TRUE : ETCH_FALSE;
    if (p->followed && !run->failing && executed(run, p->places[0]))
        return ETCH_FALSE;
    return did_execute(run, p->places[0]) == ETCH_FALSE ? ETCH_FALSE : ETCH_UNKNOWN;
}

static enum etch_truth branch_holds(const struct etch_predictor *p, const struct etch_run *run)
{
    for (size_t i = 0; i < run->branches.n; i++)
        if (run->branches.v[i].address == p->address && run->branches.v[i].taken == p->taken)
            return ETCH_TRUE;
    return run->flow && !run->lost && !etch_run_may_have(run, p->places[0]) ? ETCH_FALSE : ETCH_UNKNOWN;
}

static enum etch_truth holds(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run)
{
    enum etch_truth truth;

    switch (p->kind) {
    case ETCH_PREDICTOR_LOCK_ORDER:
    case ETCH_PREDICTOR_WAIT:
        return hang_holds(p, facts, run);
    case ETCH_PREDICTOR_ATOMICITY:
    case ETCH_PREDICTOR_ORDER:
    case ETCH_PREDICTOR_ORIGIN:
        if (p->torn)
            return torn_holds(p, facts, run);
        return has_halves(p) && !p->ever ? both_hold(p, facts, run) : order_holds(p, facts, run);
    case ETCH_PREDICTOR_VALUE:
        return value_holds(p, run);
    case ETCH_PREDICTOR_BRANCH:
        return branch_holds(p, run);
    default:
        truth = did_execute(run, p->places[0]);
        return truth == ETCH_UNKNOWN ? truth : (truth == ETCH_TRUE) != p->negated ? ETCH_TRUE : ETCH_FALSE;
    }
}

enum etch_truth etch_predictor_holds(const struct etch_predictor *p, const struct etch_names *names,
                                     const struct etch_run *run)
{
    struct facts facts = {0};
    enum etch_truth truth = make_facts(&facts, run, p->noticed) < 0 ? ETCH_UNKNOWN : holds(p, &facts, run);

    (void)names;
    release_facts(&facts);
    return truth;
}

bool etch_predictor_is_threaded(const struct etch_predictor *p)
{
    return p->kind <= ETCH_PREDICTOR_ORDER;
}

static size_t order_instance(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run,
                             uint32_t *at)
{
    const struct etch_turn *read;
    const struct order_fact *fact;
    bool open;

    fact = p->refill ? NULL : find_fact(p, facts, &open);
    if (fact) {
        memcpy(at, fact->at, fact->n * sizeof(*at));
        return fact->n;
    }
    if (strcmp(p->pattern, "RW") != 0 || order_holds(p, facts, run) != ETCH_TRUE)
        return 0;
    read = p->refill ? last_read(p, facts) : read_too_early(p, facts, run);
    if (read)
        at[0] = read->last;
    return read != NULL;
}

static size_t both_instances(const struct etch_predictor *p, const struct facts *facts, const struct etch_run *run,
                             uint32_t *at)
{
    struct etch_predictor halves[2];
    uint32_t rest[3];
    size_t n, m;

    take_halves(p, halves);
    n = order_instance(&halves[0], facts, run, at);
    m = n ? order_instance(&halves[1], facts, run, rest) : 0;
    for (size_t i = p->n_places == 3; i < m; i++) /* WRW: the read is in both */
        at[n++] = rest[i];
    return m ? n : 0;
}

static size_t torn_instance(const struct etch_predictor *p, const struct facts *facts, uint32_t *at)
{
    const struct torn_fact *f = find_torn(p, facts);

    if (f)
        memcpy(at, f->at, sizeof(f->at));
    return f && f->proven ? 4 : 0;
}

size_t etch_predictor_instance(const struct etch_predictor *p, const struct etch_run *run,
                               uint32_t at[ETCH_PREDICTOR_ACCESSES])
{
    struct facts facts = {0};
    const struct etch_run_access *value = NULL;
    size_t n = 0;

    if (p->kind == ETCH_PREDICTOR_VALUE) {
        value = etch_run_last_value(run, p->places[0], p->variable, p->write);
        if (value && value_passes(p, value))
            at[n++] = (uint32_t)(value - run->accesses.v);
    } else if ((p->kind == ETCH_PREDICTOR_ATOMICITY || p->kind == ETCH_PREDICTOR_ORDER ||
                p->kind == ETCH_PREDICTOR_ORIGIN) &&
               make_facts(&facts, run, p->noticed) == 0) {
        n = p->torn                     ? torn_instance(p, &facts, at)
            : has_halves(p) && !p->ever ? both_instances(p, &facts, run, at)
                                        : order_instance(p, &facts, run, at);
    }
    release_facts(&facts);
    return n;
}

/* ---- Candidates ---- */

struct search {
    struct etch_predictors *found;
    const struct etch_names *names;
    const struct etch_run *const *runs;
    struct facts *facts;
    size_t n;
    struct etch_index known; /* into found */
};

static bool is_same(const struct etch_predictor *a, const struct etch_predictor *b)
{
    return a->kind == b->kind && a->n_places == b->n_places && a->variable == b->variable && a->second == b->second &&
           a->ever == b->ever && a->refill == b->refill && a->torn == b->torn && a->negated == b->negated &&
           a->test == b->test && a->value == b->value && a->write == b->write && a->address == b->address &&
           a->taken == b->taken && strcmp(a->pattern, b->pattern) == 0 &&
           memcmp(a->places, b->places, a->n_places * sizeof(a->places[0])) == 0;
}

static uint64_t hash_candidate(const struct etch_predictor *p)
{
    uint64_t key[5] = {(uint64_t)p->kind << 32 | p->variable, p->second, p->address, p->value,
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

static bool is_one_function(const struct search *s, uint32_t a, uint32_t b)
{
    const struct etch_line_place *first = &s->names->places.v[a], *last = &s->names->places.v[b];

    return strcmp(first->function, last->function) == 0 && strcmp(first->file, last->file) == 0;
}

static bool add_orders(struct search *s, const struct facts *facts)
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

static bool add_torn(struct search *s, const struct facts *failing)
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

static bool add_hangs(struct search *s, const struct facts *facts)
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

/* Whether another thread than the writer reads at a place, in the writer's run. */
static bool is_shared(const struct facts *facts, uint32_t place, const struct user *write)
{
    for (size_t i = 0; i < facts->users.n; i++) {
        const struct user *u = &facts->users.v[i];

        if (u->place == place && u->variable == write->variable && u->thread != write->thread)
            return true;
    }
    return false;
}

/* Statements that write what a failing run read, although in that run they had not yet: known from other runs. */
static bool add_too_early(struct search *s, const struct facts *failing)
{
    for (size_t i = 0; i < failing->users.n; i++) {
        const struct user *read = &failing->users.v[i];

        for (size_t r = 0; !read->write && r < s->n; r++) {
            for (size_t k = 0; k < s->facts[r].users.n; k++) {
                const struct user *write = &s->facts[r].users.v[k];
                struct etch_predictor p = {.kind = ETCH_PREDICTOR_ORDER,
                                           .n_places = 2,
                                           .variable = read->variable,
                                           .places = {read->place, write->place},
                                           .second = ETCH_NOWHERE,
                                           .pattern = "RW"};

                for (int refill = 0; write->write && write->variable == read->variable && write->place != read->place &&
                                     refill < 2 && is_shared(&s->facts[r], read->place, write);
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

/* The values that passing runs had at the same place: the last ones, or all. False where there is none. */
static bool passing_range(const struct search *s, const struct etch_predictor *p, int64_t *lo, int64_t *hi)
{
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        const struct etch_run_access *last =
            run->failing ? NULL : etch_run_last_value(run, p->places[0], p->variable, p->write);

        for (const struct etch_run_access *b = run->accesses.v; last && b <= last; b++) {
            int64_t v = signed_value(b->value, b->size);

            if (!is_value_of(p, b))
                continue;
            *lo = any && *lo < v ? *lo : v;
            *hi = any && *hi > v ? *hi : v;
            any = true;
        }
    }
    return any;
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
    int64_t v = signed_value(a->value, a->size), lo = 0, hi = 0;
    bool good = true;

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

        /* What malloc and free keep in memory that is nobody's has no meaning for the program. */
        if (a->place != ETCH_NOWHERE && a->variable != ETCH_NOWHERE && a->known && !a->outside &&
            etch_run_last_value(run, a->place, a->variable, a->write) == a &&
            !add_value(s, a, etch_run_fails_at(run, a->place)))
            return false;
    }
    return true;
}

static bool add_flow(struct search *s, const struct etch_run *run)
{
    for (size_t i = 0; i < run->branches.n; i++) {
        struct etch_predictor p = {.kind = ETCH_PREDICTOR_BRANCH,
                                   .n_places = 1,
                                   .places = {run->branches.v[i].place},
                                   .variable = ETCH_NOWHERE,
                                   .second = ETCH_NOWHERE,
                                   .address = run->branches.v[i].address,
                                   .taken = run->branches.v[i].taken,
                                   .to = run->branches.v[i].to};

        /* How it went at the failing statement is the failure itself, and so is that it ran. */
        if (!etch_run_fails_at(run, p.places[0]) && !add(s, p))
            return false;
    }
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

/* Whether a statement comes behind the failing one where all goes well: that it did not run is what came of the
 * failure. */
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

/* What passing runs executed and this one did not, among the statements of the slice. */
static bool add_missing(struct search *s, const struct etch_run *run)
{
    for (uint32_t place = 0; place < s->names->places.n; place++) {
        struct etch_predictor p = {.kind = ETCH_PREDICTOR_EXECUTED,
                                   .n_places = 1,
                                   .places = {place},
                                   .variable = ETCH_NOWHERE,
                                   .second = ETCH_NOWHERE,
                                   .negated = true};

        if (s->names->places.v[place].statement && did_execute(run, place) == ETCH_FALSE &&
            !comes_behind(s, run, place) && !add(s, p))
            return false;
    }
    return true;
}

/* ---- Judging ---- */

double etch_f_half(double precision, double recall)
{
    double below = 0.25 * precision + recall;

    return below > 0 ? 1.25 * precision * recall / below : 0;
}

void etch_wilson(uint32_t k, uint32_t n, double *lo, double *hi)
{
    const double z = 1.959964;
    double p, middle, half, below;

    if (!n) {
        *lo = 0;
        *hi = 1;
        return;
    }
    p = (double)k / n;
    below = 1 + z * z / n;
    middle = (p + z * z / (2.0 * n)) / below;
    half = z * sqrt(p * (1 - p) / n + z * z / (4.0 * n * n)) / below;
    *lo = k == 0 ? 0 : fmax(0, middle - half);
    *hi = k == n ? 1 : fmin(1, middle + half);
}

static void count(struct etch_predictor *p, const struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        enum etch_truth truth = holds(p, &s->facts[i], s->runs[i]);

        if (truth == ETCH_UNKNOWN) {
            p->unknown++;
        } else if (s->runs[i]->failing) {
            p->failing++;
            p->failing_true += truth == ETCH_TRUE;
        } else {
            p->passing++;
            p->passing_true += truth == ETCH_TRUE;
        }
    }
}

static const Etch__Statement *statement_of(const struct search *s, uint32_t place)
{
    uint32_t number = s->names->places.v[place].statement;

    return s->names->slice && number && number <= s->names->slice->n_statements
               ? s->names->slice->statements[number - 1]
               : NULL;
}

/* Whether a statement ends in a branch. */
static bool decides(const struct search *s, uint32_t place)
{
    return s->names->places.v[place].branches;
}

/* Whether something above a place, in its function, may be the head of a loop. */
static bool is_below_branch(const struct search *s, uint32_t place)
{
    for (uint32_t i = 0; i < s->names->places.n; i++) {
        const Etch__Statement *statement = statement_of(s, i);

        if (statement && statement->branch && is_one_function(s, i, place) &&
            s->names->places.v[i].line < s->names->places.v[place].line)
            return true;
    }
    return false;
}

/* Whether the last of three accesses went back in its function's text without a new call of it: the next turn of a
 * loop, which nobody takes for one step with the turn before. Where calls are not known: whether that may be. */
static bool is_next_turn(const struct search *s, const struct etch_predictor *p)
{
    bool back = s->names->places.v[p->places[2]].line < s->names->places.v[p->places[0]].line;

    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        bool open;
        const struct order_fact *f = run->failing ? find_fact(p, &s->facts[i], &open) : NULL;

        if (f && run->flow)
            return back && run->accesses.v[f->at[0]].call == run->accesses.v[f->at[2]].call;
    }
    return back && is_below_branch(s, p->places[2]);
}

/* Whether the statement at the end of a triple reads what it writes, or writes what came of the first. */
static bool is_update(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++) {
        bool open;
        const struct order_fact *f = s->runs[i]->failing ? find_fact(p, &s->facts[i], &open) : NULL;

        for (size_t k = 0; f && k < s->facts[i].turns.all.n; k++) {
            const struct etch_turn *t = &s->facts[i].turns.all.v[k];

            if (t->first <= f->at[2] && t->last >= f->at[2] && t->place == p->places[2] && t->read && t->write)
                return true;
        }
    }
    return etch_names_feeds(s->names, p->places[0], p->places[2]);
}

static bool feeds_failure(const struct search *s, uint32_t place)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing)
            return etch_names_feeds(s->names, place, s->runs[i]->failing_place);
    return false;
}

/* Whether one statement is before the other in every run that has both, passing ones among them. */
static bool is_given(const struct search *s, const struct etch_predictor *p)
{
    bool any = false;

    for (size_t r = 0; r < s->n; r++) {
        const struct etch_turns *turns = &s->facts[r].turns;

        for (size_t i = 0; i < turns->all.n; i++) {
            const struct etch_turn *a = &turns->all.v[i];

            for (size_t k = 0; a->place == p->places[0] && a->variable == p->variable && k < turns->all.n; k++) {
                const struct etch_turn *b = &turns->all.v[k];

                if (b->place != p->places[1] || b->object != a->object || b->thread == a->thread)
                    continue;
                if (etch_run_compare(s->runs[r], &s->runs[r]->accesses.v[a->first], &s->runs[r]->accesses.v[b->last]) >=
                    0)
                    return false;
                any |= !s->runs[r]->failing;
            }
        }
    }
    return any;
}

/* Whether it speaks of another thread's turn at the statement that failed: what that one saw did no harm. */
static bool is_beside(const struct search *s, const struct etch_predictor *p)
{
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        bool open, beside = false;
        const struct order_fact *f = run->failing && !p->refill ? find_fact(p, &s->facts[i], &open) : NULL;

        for (uint32_t k = 0; f && k < f->n; k++)
            beside |= f->places[k] == run->failing_place && run->accesses.v[f->at[k]].thread != run->failing_thread &&
                      run->failure->kind != ETCH__FAILURE_KIND__FAILURE_HANG;
        if (f && !beside)
            return false;
        any |= beside;
    }
    return any;
}

static bool has_happened(const struct search *s, const struct etch_predictor *p)
{
    bool open;

    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing && find_fact(p, &s->facts[i], &open))
            return true;
    return false;
}

static bool is_noticed(const struct search *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing && s->runs[i]->noticed != UINT32_MAX)
            return true;
    return false;
}

/* What was meant to be one step: what the failing statement takes together, an update, a check and what it guards, a
 * write and what is made of it. */
/* Whether a place is in a function that had called the one which failed: what that did before is another step. */
static bool is_callers(const struct search *s, uint32_t place)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        const struct etch_run_thread *t =
            run->failing && run->failing_thread < run->threads.n ? &run->threads.v[run->failing_thread] : NULL;

        for (size_t k = 0; t && k < t->stack.n; k++)
            if (t->stack.v[k] != run->failing_place && is_one_function(s, t->stack.v[k], place))
                return true;
    }
    return false;
}

/* Whether passing runs read there what their own thread had written at the first of three places. */
static bool is_own_in_passing(const struct search *s, const struct etch_predictor *p)
{
    const struct etch_predictor own = {.kind = ETCH_PREDICTOR_ORIGIN,
                                       .n_places = 2,
                                       .places = {p->places[0], p->places[2]},
                                       .variable = p->variable,
                                       .pattern = "WR"};
    unsigned passing = 0, with = 0;

    for (size_t i = 0; i < s->n; i++) {
        bool open;

        if (s->runs[i]->failing || !is_watched(s->runs[i], p->variable) || !executed(s->runs[i], p->places[2]))
            continue;
        passing++;
        with += find_fact(&own, &s->facts[i], &open) != NULL;
    }
    return passing && with == passing;
}

/* Whether the two orders of which WRW is made set failing runs apart, each by itself: it is what is between them. */
static bool is_between(const struct search *s, const struct etch_predictor *p)
{
    struct etch_predictor halves[2];

    take_halves(p, halves);
    for (int i = 0; i < 2; i++) {
        halves[i].failing = halves[i].failing_true = halves[i].passing = halves[i].passing_true = 0;
        halves[i].unknown = 0;
        count(&halves[i], s);
        if (halves[i].passing_true || halves[i].failing_true != halves[i].failing || !halves[i].passing)
            return false;
    }
    return true;
}

static bool is_meant(const struct search *s, const struct etch_predictor *p)
{
    bool together = is_one_function(s, p->places[0], p->places[2]) && !is_next_turn(s, p);

    if (p->torn && is_noticed(s))
        return true; /* what the program looked at then it took together */
    /* What is seen new is looked at first: the other way round both may have been old then. */
    if (p->n_places == 4 && s->names->places.v[p->places[1]].line > s->names->places.v[p->places[2]].line)
        return false;
    if (p->n_places == 4)
        return (feeds_failure(s, p->places[1]) || decides(s, p->places[1])) && feeds_failure(s, p->places[2]);
    if (strcmp(p->pattern, "RWW") == 0)
        return is_update(s, p) || (together && decides(s, p->places[0]));
    if (strcmp(p->pattern, "WWR") == 0 && !is_callers(s, p->places[0]) && is_own_in_passing(s, p))
        return true;
    if (strcmp(p->pattern, "WRW") == 0 && is_between(s, p))
        return true;
    return together && (strcmp(p->pattern, "RWR") != 0 || decides(s, p->places[0]));
}

/* Whether a value was seen that no statement of the slice had written: what kept them from it says more. */
static bool is_unwritten(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        const struct etch_run_access *a =
            run->failing && !p->write ? etch_run_last_value(run, p->places[0], p->variable, false) : NULL;
        bool written = false;

        if (!a || a->crash || !value_passes(p, a))
            continue;
        for (size_t k = 0; k < run->accesses.n; k++) {
            const struct etch_run_access *w = &run->accesses.v[k];

            written |= w->write && w->address < a->address + a->size && a->address < w->address + w->size;
        }
        if (!written)
            return true;
    }
    return false;
}

/* Whether a run failed by following this pointer. Where the statement tests it first, who got past may not have. */
static bool is_followed(const struct search *s, const struct etch_predictor *p)
{
    const Etch__Statement *statement = statement_of(s, p->places[0]);

    if (p->kind != ETCH_PREDICTOR_VALUE || p->test != ETCH_VALUE_ZERO || p->write || (statement && statement->branch))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing && s->runs[i]->failing_place == p->places[0] &&
            s->runs[i]->null_variable == p->variable)
            return true;
    return false;
}

static const char *location_of(const struct search *s, const struct etch_run_access *a)
{
    return a->operand < s->names->locations.n ? s->names->locations.v[a->operand] : NULL;
}

/* Whether a statement that names the location had written there before: it was in use. Where a library was at it since,
 * as malloc and free are, it may have been another owner's. */
static bool was_written(const struct search *s, const struct etch_run *run, const struct order_fact *f,
                        const char *location)
{
    for (uint32_t k = f->at[0]; k-- > 0;) {
        const struct etch_run_access *a = &run->accesses.v[k];
        const char *here = a->object == run->accesses.v[f->at[0]].object ? location_of(s, a) : NULL;

        if (a->outside && a->object == run->accesses.v[f->at[0]].object)
            return false;
        if (here && a->write && strcmp(here, location) == 0)
            return true;
    }
    return false;
}

/* Whether what was read had been written as part of something else: a write that went astray. */
static bool is_stray(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++) {
        bool open;
        const struct order_fact *f = s->runs[i]->failing ? find_fact(p, &s->facts[i], &open) : NULL;
        const struct etch_run_access *write = f ? &s->runs[i]->accesses.v[f->at[0]] : NULL;
        const char *to = f ? location_of(s, write) : NULL;
        const char *from = f ? location_of(s, &s->runs[i]->accesses.v[f->at[1]]) : NULL;

        /* A statement that the slice has not writes nothing by that name, either. */
        if (from && from[0] && !write->outside && (!to || (to[0] && strcmp(to, from) != 0)) &&
            was_written(s, s->runs[i], f, from))
            return true;
    }
    return false;
}

/* Whether no passing run came to where the value was read: then it is that this ran, and not who wrote it. */
static bool is_only_there(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->runs[i]->failing && executed(s->runs[i], p->places[1]))
            return false;
    return true;
}

/* Whether passing runs show that the two statements take turns, so that one without the other means something. */
static bool is_refilled(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++) {
        unsigned reads = 0, writes = 0;

        for (size_t k = 0; !s->runs[i]->failing && k < s->facts[i].turns.all.n; k++) {
            const struct etch_turn *t = &s->facts[i].turns.all.v[k];

            reads += t->place == p->places[0] && t->variable == p->variable && t->read;
            writes += t->place == p->places[1] && t->variable == p->variable && t->write;
        }
        if (reads > 1 && writes > 1)
            return true;
    }
    return false;
}

static void judge(struct etch_predictor *p, const struct search *s)
{
    double p_lo, p_hi, r_lo, r_hi;
    uint32_t held;

    p->followed = is_followed(s, p);
    count(p, s);
    held = p->failing_true + p->passing_true;
    p->precision = held ? (double)p->failing_true / held : 0;
    p->recall = p->failing ? (double)p->failing_true / p->failing : 0;
    /* Where no passing run could tell, nothing is known of what sets the failing ones apart. */
    p->f = p->passing && !(p->refill && !is_refilled(s, p)) ? etch_f_half(p->precision, p->recall) : 0;
    etch_wilson(p->failing_true, held, &p_lo, &p_hi);
    etch_wilson(p->failing_true, p->failing, &r_lo, &r_hi);
    p->f_lo = etch_f_half(p_lo, r_lo);
    p->f_hi = etch_f_half(p_hi, r_hi);
    p->guarded = p->kind == ETCH_PREDICTOR_ATOMICITY && is_meant(s, p);
    p->given = p->kind == ETCH_PREDICTOR_ORDER && is_given(s, p);
    p->beside = p->kind == ETCH_PREDICTOR_ORDER && is_beside(s, p);
    p->early = p->kind == ETCH_PREDICTOR_ORDER && !has_happened(s, p);
    p->unwritten = p->kind == ETCH_PREDICTOR_VALUE && is_unwritten(s, p);
    p->stray = p->kind == ETCH_PREDICTOR_ORIGIN && is_stray(s, p);
    p->only_there = p->kind == ETCH_PREDICTOR_ORIGIN && is_only_there(s, p);
    p->distance = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_places; i++) {
        uint32_t d = s->names->places.v[p->places[i]].distance;

        p->distance = d < p->distance ? d : p->distance;
        p->spread += 2 * (d < 1000 ? d : 1000) + s->names->places.v[p->places[i]].decides;
    }
}

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

/* What says more, of predictors with the same numbers: who waits for whom; how threads met; a value that means
 * something (nothing, below nothing); who wrote it; how a branch went, which is the program's own test; a number that
 * only fits these runs; a value that came from nowhere. That a thread waits for what it holds itself is the failure,
 * and no cause of it. */
static int weight(const struct etch_predictor *p)
{
    switch (p->kind) {
    case ETCH_PREDICTOR_LOCK_ORDER:
        return p->n_places > 2 ? 0 : 2;
    case ETCH_PREDICTOR_WAIT:
        return p->n_places > 1 ? 0 : 2;
    case ETCH_PREDICTOR_ATOMICITY:
    case ETCH_PREDICTOR_ORDER:
        return 1;
    case ETCH_PREDICTOR_VALUE:
        return p->unwritten ? 7 : p->test == ETCH_VALUE_ZERO || p->test == ETCH_VALUE_NEGATIVE ? 3 : 6;
    case ETCH_PREDICTOR_ORIGIN:
        return p->only_there ? 8 : p->stray ? 2 : 4;
    case ETCH_PREDICTOR_BRANCH:
        return 5;
    default:
        return 8;
    }
}

/* What no passing run has and nearly all failing ones do is as good as what all of them do: the one that lacks it may
 * be one in which a hit came a little late. */
static double standing(const struct etch_predictor *p)
{
    return p->f > 0 && !p->passing_true && p->recall >= 0.9 ? 1 : p->f;
}

/* Best first. What is as good by its numbers is put by what it says: how threads met before what came of it; near the
 * failure before far; the particular before the general. */
static int by_rank(const void *x, const void *y, void *context)
{
    const struct etch_predictor *a = x, *b = y;
    const struct etch_names *names = context;
    int places;

    if (fabs(standing(a) - standing(b)) > 1e-12)
        return standing(a) > standing(b) ? -1 : 1;
    if (weight(a) != weight(b))
        return weight(a) < weight(b) ? -1 : 1;
    if (a->noticed != b->noticed)
        return a->noticed ? -1 : 1;
    /* What was meant to be one step says more than an order; where nothing says that it was, two statements say enough.
     */
    if (a->guarded != b->guarded)
        return a->guarded ? -1 : 1;
    if (a->given != b->given)
        return a->given ? 1 : -1;
    if (a->beside != b->beside)
        return a->beside ? 1 : -1;
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
    return a->value < b->value ? -1 : a->value > b->value;
}

static bool find_candidates(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];

        if (run->failing &&
            !(add_hangs(s, &s->facts[i]) && add_torn(s, &s->facts[i]) && add_orders(s, &s->facts[i]) &&
              add_too_early(s, &s->facts[i]) && add_values(s, run) && add_flow(s, run) && add_missing(s, run)))
            return false;
    }
    return true;
}

static bool is_half(const struct etch_predictor *p, const char *pattern)
{
    if (p->refill && p->passing_true)
        return false; /* else the other half alone would say it */
    return p->kind == ETCH_PREDICTOR_ORDER && !p->ever && strcmp(p->pattern, pattern) == 0 && p->failing_true &&
           p->failing_true == p->failing;
}

/* From a write to a read, and from a read to the write behind: of one variable WRW, which may not have come to its end;
 * of two, WRRW: one function writes them one after the other, another reads them together and sees one new, one old. */
static bool add_pair(struct search *s, struct etch_predictor first, struct etch_predictor second)
{
    bool one = first.variable == second.variable;
    struct etch_predictor p = {.kind = ETCH_PREDICTOR_ATOMICITY,
                               .n_places = one ? 3 : 4,
                               .places = {first.places[0], first.places[1], second.places[0], second.places[1]},
                               .variable = first.variable,
                               .second = one ? ETCH_NOWHERE : second.variable};

    if (!is_half(&first, "WR") || !is_half(&second, "RW") || first.places[0] == second.places[1] ||
        !is_one_function(s, first.places[0], second.places[1]) || (one && first.places[1] != second.places[0]) ||
        !is_one_function(s, first.places[1], second.places[0]))
        return true;
    p.refill = second.refill;
    if (one)
        p.places[2] = second.places[1];
    snprintf(p.pattern, sizeof(p.pattern), "%s", one ? "WRW" : "WRRW");
    return add(s, p);
}

static bool add_pairs(struct search *s)
{
    size_t n = s->found->all.n;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (!add_pair(s, s->found->all.v[i], s->found->all.v[k]))
                return false;
    for (size_t i = n; i < s->found->all.n; i++)
        judge(&s->found->all.v[i], s);
    return true;
}

static bool start_search(struct search *s, bool early)
{
    bool good;

    s->facts = calloc(s->n + 1, sizeof(*s->facts));
    good = s->facts != NULL;
    for (size_t i = 0; good && i < s->n; i++)
        good = make_facts(&s->facts[i], s->runs[i], early) == 0;
    return good;
}

static void end_search(struct search *s)
{
    for (size_t i = 0; s->facts && i < s->n; i++)
        release_facts(&s->facts[i]);
    free(s->facts);
    etch_index_release(&s->known);
}

/* How threads met before the program noticed that something was wrong: what it did then, until it failed, is only how
 * it said so. Taken only where it tells failing and passing runs apart. */
static bool find_early(struct etch_predictors *found, const struct search *late)
{
    struct etch_predictors early = {0};
    struct search s = {.found = &early, .names = late->names, .runs = late->runs, .n = late->n};
    bool good = true;

    if (!is_noticed(late))
        return true;
    good = start_search(&s, true);
    for (size_t i = 0; good && i < s.n; i++)
        if (s.runs[i]->failing)
            good = add_orders(&s, &s.facts[i]) && add_too_early(&s, &s.facts[i]);
    for (size_t i = 0; good && i < early.all.n; i++)
        judge(&early.all.v[i], &s);
    good = good && add_pairs(&s);
    for (size_t i = 0; good && i < early.all.n; i++) {
        early.all.v[i].noticed = true;
        if (etch_predictor_is_threaded(&early.all.v[i]) && early.all.v[i].f > NOTICED_ENOUGH)
            good = etch_array_push(&found->all, early.all.v[i]);
    }
    etch_predictors_release(&early);
    end_search(&s);
    return good;
}

int etch_predictors_find(struct etch_predictors *predictors, const struct etch_names *names,
                         const struct etch_run *const *runs, size_t n)
{
    struct search s = {.found = predictors, .names = names, .runs = runs, .n = n};
    bool good;

    predictors->all.n = 0;
    good = start_search(&s, false) && find_candidates(&s);
    for (size_t i = 0; good && i < predictors->all.n; i++)
        judge(&predictors->all.v[i], &s);
    good = good && add_pairs(&s) && find_early(predictors, &s);
    if (good && predictors->all.n)
        qsort_r(predictors->all.v, predictors->all.n, sizeof(*predictors->all.v), by_rank, (void *)(uintptr_t)names);
    end_search(&s);
    return good ? 0 : -1;
}

void etch_predictors_release(struct etch_predictors *predictors)
{
    etch_array_free(&predictors->all);
}
