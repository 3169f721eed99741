/* SPDX-License-Identifier: MIT */
/* The truth of a predictor in a run (true, false or unknown), and the accesses that make it true. */
#include "sketch/predict/model.h"

#include <stdio.h>
#include <string.h>

/* ---- Places and variables of a run ---- */

bool etch_executed(const struct etch_run *run, uint32_t place)
{
    return etch_run_visited(run, place) || etch_run_accessed(run, place);
}

enum etch_truth etch_did_execute(const struct etch_run *run, uint32_t place)
{
    if (etch_executed(run, place))
        return ETCH_TRUE;
    if (run->names && !run->names->places.v[place].statement)
        return ETCH_UNKNOWN;
    return run->flow && !run->lost && !etch_run_may_have(run, place) ? ETCH_FALSE : ETCH_UNKNOWN;
}

bool etch_is_watched(const struct etch_run *run, uint32_t variable)
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

/* The access to a variable in a failing run's last access group at a place. Accesses to other objects there say nothing
 * about the object that it failed with. NULL: it was not seen. */
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

/* True if the last access group at the place was not seen, because no debug register was set on its object yet.
 * `before`: also true if no earlier access to its object was seen. */
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

/* ---- Orders ---- */

/* True if it is unknown whether a statement had written yet: the statement ran, perhaps before a debug register was
 * set. */
static bool may_be_written(const struct etch_predictor *p, const struct etch_facts *facts, const struct etch_run *run,
                           const struct etch_access_group *read)
{
    if (!run->flow || !is_sited(run, p->variable) || etch_did_execute(run, p->places[1]) == ETCH_FALSE)
        return false;
    for (size_t i = 0; i < facts->groups.all.n; i++) {
        const struct etch_access_group *t = &facts->groups.all.v[i];

        if (t->place == p->places[1] && t->object == read->object && t->write)
            return false;
    }
    return true;
}

static const struct etch_access_group *last_read(const struct etch_predictor *p, const struct etch_facts *facts)
{
    const struct etch_access_group *read = NULL;

    for (size_t i = 0; i < facts->groups.all.n; i++) {
        const struct etch_access_group *t = &facts->groups.all.v[i];

        if (t->variable == p->variable && t->place == p->places[0] && t->read && !t->write &&
            (!read || t->first > read->first))
            read = t;
    }
    return read;
}

/* RW: the last read by the first statement came before the second statement had written: the write came later, or never
 * ran. */
static const struct etch_access_group *read_too_early(const struct etch_predictor *p, const struct etch_facts *facts,
                                                      const struct etch_run *run)
{
    const struct etch_access_group *read = last_read(p, facts);

    for (size_t i = 0; read && i < facts->groups.all.n; i++) {
        const struct etch_access_group *t = &facts->groups.all.v[i];

        if (t->place != p->places[1] || t->object != read->object || !t->write)
            continue;
        if (t->thread == read->thread ||
            etch_run_compare(run, &run->accesses.v[read->last], &run->accesses.v[t->first]) >= 0)
            return NULL;
    }
    return read;
}

/* True if a read comes before the write that should refill the variable: the writing statement did not write since the
 * last read. */
static bool is_unfilled(const struct etch_predictor *p, const struct etch_facts *facts, const struct etch_run *run,
                        size_t i)
{
    const struct etch_access_group *read = &facts->groups.all.v[i];

    for (size_t k = i; k-- > 0 && facts->groups.all.v[k].object == read->object;) {
        const struct etch_access_group *t = &facts->groups.all.v[k];

        if (t->place == p->places[0] && t->read)
            return true;
        if (t->place == p->places[1] && t->write)
            return false;
    }
    for (size_t k = i + 1; k < facts->groups.all.n && facts->groups.all.v[k].object == read->object; k++)
        if (facts->groups.all.v[k].place == p->places[1] && facts->groups.all.v[k].write)
            return etch_run_compare(run, &run->accesses.v[read->read_at],
                                    &run->accesses.v[facts->groups.all.v[k].write_at]) < 0;
    return true;
}

/* In a failing run the last read counts, in a passing run each read. */
static enum etch_truth refill_holds(const struct etch_predictor *p, const struct etch_facts *facts,
                                    const struct etch_run *run)
{
    const struct etch_access_group *last = NULL;
    bool any = false, unfilled = false;

    for (size_t i = 0; i < facts->groups.all.n; i++) {
        const struct etch_access_group *t = &facts->groups.all.v[i];
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
    if (!last || !etch_is_watched(run, p->variable) || !run->order || is_unseen(run, p->places[0], p->variable, false))
        return etch_did_execute(run, p->places[0]) == ETCH_FALSE ? ETCH_FALSE : ETCH_UNKNOWN;
    return (run->failing ? unfilled : any) ? ETCH_TRUE : ETCH_FALSE;
}

static enum etch_truth order_holds(const struct etch_predictor *p, const struct etch_facts *facts,
                                   const struct etch_run *run)
{
    bool rw = strcmp(p->pattern, "RW") == 0, open, incomplete = false;
    const struct etch_access_group *early;

    if (p->refill)
        return refill_holds(p, facts, run);
    if (etch_facts_find(p, facts, &open))
        return ETCH_TRUE;
    if (open)
        return ETCH_UNKNOWN;
    for (uint32_t i = 0; i < p->n_places; i++) {
        enum etch_truth truth = etch_did_execute(run, p->places[i]);

        if (truth == ETCH_FALSE && !(rw && i == 1))
            return ETCH_FALSE;
        incomplete |= truth == ETCH_UNKNOWN && run->flow && run->lost;
    }
    if (incomplete || !etch_is_watched(run, p->variable) || !run->order ||
        (!p->ever && is_unseen(run, p->places[rw ? 0 : p->n_places - 1], p->variable, !rw)))
        return ETCH_UNKNOWN;
    early = rw && !p->ever ? read_too_early(p, facts, run) : NULL;
    if (early && may_be_written(p, facts, run, early))
        return ETCH_UNKNOWN;
    return early ? ETCH_TRUE : ETCH_FALSE;
}

void etch_take_halves(const struct etch_predictor *p, struct etch_predictor halves[2])
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

static enum etch_truth both_hold(const struct etch_predictor *p, const struct etch_facts *facts,
                                 const struct etch_run *run)
{
    struct etch_predictor halves[2];
    enum etch_truth first, second;

    etch_take_halves(p, halves);
    first = order_holds(&halves[0], facts, run);
    second = order_holds(&halves[1], facts, run);
    if (first == ETCH_FALSE || second == ETCH_FALSE)
        return ETCH_FALSE;
    return first == ETCH_TRUE && second == ETCH_TRUE ? ETCH_TRUE : ETCH_UNKNOWN;
}

static const struct torn_fact *find_torn(const struct etch_predictor *p, const struct etch_facts *facts)
{
    for (size_t i = 0; i < facts->torn.n; i++) {
        const struct torn_fact *f = &facts->torn.v[i];

        if (f->variable == p->variable && f->second == p->second &&
            memcmp(f->places, p->places, sizeof(f->places)) == 0)
            return f;
    }
    return NULL;
}

static bool is_group(const struct etch_access_group *t, uint32_t place, uint32_t variable, bool write)
{
    return t->place == place && t->variable == variable && (write ? t->write : t->read && !t->write);
}

/* The group whose value group `read` read, if it is of `place` and of another thread, and the order is proven; else
 * NULL. */
static const struct etch_access_group *seen_from(const struct etch_facts *facts, const struct etch_run *run,
                                                 size_t read, uint32_t place)
{
    const struct etch_access_group *r = &facts->groups.all.v[read];

    for (size_t k = read; k-- > 0 && facts->groups.all.v[k].object == r->object;) {
        const struct etch_access_group *w = &facts->groups.all.v[k];

        if (w->write)
            return w->place == place && w->thread != r->thread &&
                           etch_run_compare(run, &run->accesses.v[w->write_at], &run->accesses.v[r->read_at]) < 0
                       ? w
                       : NULL;
    }
    return NULL;
}

/* True if a thread had come no further than a write when the run failed: it did not execute `place` after the write. */
static bool had_not_come(const struct etch_run *run, const struct etch_access_group *write, uint32_t place)
{
    const struct etch_run_visit *last = etch_run_visited_by(run, write->thread, place);
    uint64_t seq = run->accesses.v[write->write_at].seq;

    return run->flow && !run->lost && !etch_run_may_have(run, place) && seq != UINT64_MAX && (!last || last->seq < seq);
}

/* True if a call was seen to write an object at a place. */
static bool wrote_there(const struct etch_facts *facts, const struct etch_access_group *call, uint32_t place,
                        uint32_t object)
{
    for (size_t i = 0; i < facts->groups.all.n; i++) {
        const struct etch_access_group *t = &facts->groups.all.v[i];

        if (t->place == place && t->object == object && t->write && t->thread == call->thread && t->call == call->call)
            return true;
    }
    return false;
}

/* A failing run may end after the writing call made the first variable new, and before it comes to the second. The
 * second variable is then certainly old. Finds the three accesses that show it, the last time that this is possible.
 * Returns their number; 0: never. `open`: the call may have come to the second variable. */
static size_t find_cut_short(const struct etch_predictor *p, const struct etch_facts *facts, const struct etch_run *run,
                             uint32_t at[3], bool *open)
{
    const struct etch_access_group *groups = facts->groups.all.v;

    for (size_t i = facts->groups.all.n; run->failing && i-- > 0;) {
        const struct etch_access_group *write =
            is_group(&groups[i], p->places[1], p->variable, false) ? seen_from(facts, run, i, p->places[0]) : NULL;

        for (size_t k = 0; write && write->call && groups[i].call && k < facts->groups.all.n; k++) {
            if (!is_group(&groups[k], p->places[2], p->second, false) || groups[k].thread != groups[i].thread ||
                groups[k].call != groups[i].call || wrote_there(facts, write, p->places[3], groups[k].object))
                continue;
            *open = !had_not_come(run, write, p->places[3]);
            at[0] = write->write_at;
            at[1] = groups[i].read_at;
            at[2] = groups[k].read_at;
            return 3;
        }
    }
    return 0;
}

static enum etch_truth torn_holds(const struct etch_predictor *p, const struct etch_facts *facts,
                                  const struct etch_run *run)
{
    const struct torn_fact *f = find_torn(p, facts);
    uint32_t at[3];
    bool open;

    if (f && f->proven)
        return ETCH_TRUE;
    if (find_cut_short(p, facts, run, at, &open))
        return open ? ETCH_UNKNOWN : ETCH_TRUE;
    if (f)
        return ETCH_UNKNOWN;
    for (uint32_t i = 0; i < 4; i++)
        if (etch_did_execute(run, p->places[i]) == ETCH_FALSE)
            return ETCH_FALSE;
    if (is_unseen(run, p->places[1], p->variable, false) || is_unseen(run, p->places[2], p->second, false))
        return ETCH_UNKNOWN;
    return etch_is_watched(run, p->variable) && etch_is_watched(run, p->second) && run->order ? ETCH_FALSE
                                                                                              : ETCH_UNKNOWN;
}

static enum etch_truth hang_holds(const struct etch_predictor *p, const struct etch_facts *facts,
                                  const struct etch_run *run)
{
    for (size_t i = 0; i < facts->hangs.n; i++) {
        const struct etch_hang *h = &facts->hangs.v[i];

        if ((h->kind == ETCH_HANG_RING) == (p->kind == ETCH_PREDICTOR_LOCK_ORDER) && h->n == p->n_places &&
            memcmp(h->places, p->places, h->n * sizeof(h->places[0])) == 0)
            return ETCH_TRUE;
    }
    return run->failing && !run->synced ? ETCH_UNKNOWN : ETCH_FALSE;
}

/* ---- Values ---- */

int64_t etch_signed_value(uint64_t value, uint32_t size)
{
    unsigned unused = size && size < 8 ? 64 - 8 * size : 0; /* an access of no size has no sign */

    return (int64_t)(value << unused) >> unused;
}

bool etch_value_passes(const struct etch_predictor *p, const struct etch_run_access *a)
{
    switch (p->test) {
    case ETCH_VALUE_ZERO:
        return a->value == 0;
    case ETCH_VALUE_EQUAL:
        return a->value == p->value;
    case ETCH_VALUE_NEGATIVE:
        return etch_signed_value(a->value, a->size) < 0;
    case ETCH_VALUE_BELOW:
        return etch_signed_value(a->value, a->size) < (int64_t)p->value;
    case ETCH_VALUE_ABOVE:
        return etch_signed_value(a->value, a->size) > (int64_t)p->value;
    default:
        return true; /* a comparison: the access shows one side */
    }
    return false;
}

bool etch_is_value_of(const struct etch_predictor *p, const struct etch_run_access *a)
{
    return a->place == p->places[0] && a->variable == p->variable && a->known && a->write == p->write;
}

/* A failing run stopped at the statement: its last execution counts. A passing run got past every execution. */
static bool ever_passes(const struct etch_predictor *p, const struct etch_run *run)
{
    for (size_t i = 0; i < run->accesses.n; i++)
        if (etch_is_value_of(p, &run->accesses.v[i]) && etch_value_passes(p, &run->accesses.v[i]))
            return true;
    return false;
}

/* The same as it stood whenever the run went through where others fail. */
static bool passes_at_chance(const struct etch_predictor *p, const struct etch_run *run)
{
    bool holds_now = false;
    size_t point = 0;

    for (size_t i = 0; i < run->accesses.n && point < run->comparison_points.n; i++) {
        if (etch_is_value_of(p, &run->accesses.v[i]))
            holds_now = etch_value_passes(p, &run->accesses.v[i]);
        if (i != run->comparison_points.v[point])
            continue;
        if (holds_now)
            return true;
        point++;
    }
    return false;
}

static enum etch_truth value_holds(const struct etch_predictor *p, const struct etch_run *run)
{
    const struct etch_run_access *a = etch_run_last_value(run, p->places[0], p->variable, p->write);

    if (a && !run->failing && (p->ever || !run->comparison_points.n))
        return ever_passes(p, run) ? ETCH_TRUE : ETCH_FALSE;
    if (a && !run->failing)
        return passes_at_chance(p, run) ? ETCH_TRUE : ETCH_FALSE;
    if (a && !is_unseen(run, p->places[0], p->variable, false))
        return etch_value_passes(p, a) ? ETCH_TRUE : ETCH_FALSE;
    if (p->followed && !run->failing && etch_executed(run, p->places[0]))
        return ETCH_FALSE;
    return etch_did_execute(run, p->places[0]) == ETCH_FALSE ? ETCH_FALSE : ETCH_UNKNOWN;
}

/* ---- All kinds ---- */

enum etch_truth etch_holds_by_facts(const struct etch_predictor *p, const struct etch_facts *facts,
                                    const struct etch_run *run)
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
        return etch_is_relation(p) ? etch_relation_holds(p, facts, run) : value_holds(p, run);
    case ETCH_PREDICTOR_BRANCH:
        return etch_branch_holds(p, run);
    default:
        truth = etch_did_execute(run, p->places[0]);
        return truth == ETCH_UNKNOWN ? truth : (truth == ETCH_TRUE) != p->negated ? ETCH_TRUE : ETCH_FALSE;
    }
}

enum etch_truth etch_predictor_holds(const struct etch_predictor *p, const struct etch_names *names,
                                     const struct etch_run *run)
{
    const struct etch_facts *facts = etch_facts_of(run, p->first_symptom);

    (void)names;
    return facts ? etch_holds_by_facts(p, facts, run) : ETCH_UNKNOWN;
}

static size_t order_instance(const struct etch_predictor *p, const struct etch_facts *facts, const struct etch_run *run,
                             uint32_t *at)
{
    const struct etch_access_group *read;
    const struct order_fact *fact;
    bool open;

    fact = p->refill ? NULL : etch_facts_find(p, facts, &open);
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

static size_t both_instances(const struct etch_predictor *p, const struct etch_facts *facts, const struct etch_run *run,
                             uint32_t *at)
{
    struct etch_predictor halves[2];
    uint32_t rest[3];
    size_t n, m;

    etch_take_halves(p, halves);
    n = order_instance(&halves[0], facts, run, at);
    m = n ? order_instance(&halves[1], facts, run, rest) : 0;
    for (size_t i = p->n_places == 3; i < m; i++) /* WRW: the read is in both */
        at[n++] = rest[i];
    return m ? n : 0;
}

static size_t torn_instance(const struct etch_predictor *p, const struct etch_facts *facts, const struct etch_run *run,
                            uint32_t *at)
{
    const struct torn_fact *f = find_torn(p, facts);
    size_t n;
    bool open = false;

    if (f && f->proven) {
        memcpy(at, f->at, sizeof(f->at));
        return 4;
    }
    n = find_cut_short(p, facts, run, at, &open);
    return open ? 0 : n;
}

size_t etch_predictor_instance(const struct etch_predictor *p, const struct etch_run *run,
                               uint32_t at[ETCH_PREDICTOR_ACCESSES])
{
    const struct etch_facts *facts;
    const struct etch_run_access *value = NULL;
    size_t n = 0;

    if (p->kind == ETCH_PREDICTOR_VALUE) {
        value = etch_run_last_value(run, p->places[0], p->variable, p->write);
        if (value && etch_value_passes(p, value))
            at[n++] = (uint32_t)(value - run->accesses.v);
    } else if ((p->kind == ETCH_PREDICTOR_ATOMICITY || p->kind == ETCH_PREDICTOR_ORDER ||
                p->kind == ETCH_PREDICTOR_ORIGIN) &&
               (facts = etch_facts_of(run, p->first_symptom))) {
        n = p->torn                     ? torn_instance(p, facts, run, at)
            : has_halves(p) && !p->ever ? both_instances(p, facts, run, at)
                                        : order_instance(p, facts, run, at);
    }
    return n;
}
