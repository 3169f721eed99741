/* SPDX-License-Identifier: MIT */
/* Orders to enforce. A thread that is about to do what must come second is held back until the first has come. A moment
 * is a point at an instruction, or an access or call at a line; the lines are those of the program's own source. */
#include "collector/lab/runtime.h"

#define ARRIVALS 4 /* places that one access is at, at most: a line, its reads, its writes */

enum { FIRST = 1, THEN = 2 };

static struct {
    uint32_t first, then; /* visits so far */
} visits[ETCH_LAB_MOST_RULES];

/* Where each thread is, in places. */
static struct {
    uint32_t place, count;
} arrived[ETCH_LAB_THREADS][ARRIVALS];
static uint32_t n_arrived[ETCH_LAB_THREADS];
static uint32_t counts[ETCH_LAB_PLACES][ETCH_LAB_THREADS];
static uint32_t named[ETCH_LAB_NAMES]; /* the number of the thread; UINT32_MAX: not made yet */

/* ---- Threads ---- */

static uint32_t thread_of(const struct etch_lab_moment *m)
{
    return m->name ? named[m->name - 1] : m->thread;
}

static void show_threads(void)
{
    for (uint32_t i = 0; i < lab->n_rules; i++) {
        lab->rule_thread[i][0] = thread_of(&lab->rules[i].first);
        lab->rule_thread[i][1] = thread_of(&lab->rules[i].then);
    }
}

static bool has_name(uint32_t thread, const struct etch_lab_name *name)
{
    for (uint32_t i = name->depth; i-- > 0; thread = lab->thread[thread].creator)
        if (thread == 0 || lab->thread[thread].ordinal != name->ordinals[i])
            return false;
    return thread == 0;
}

void lab_rules_made(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_names; i++)
        if (named[i] == UINT32_MAX && has_name(thread, &lab->names[i]))
            named[i] = thread;
    show_threads();
}

void lab_rules_begin(void)
{
    for (uint32_t i = 0; i < lab->n_names; i++)
        named[i] = UINT32_MAX;
    lab_rules_made(0);
}

/* ---- Places ---- */

static bool is_within(const struct etch_lab_range *ranges, uint32_t n, uint64_t at)
{
    while (n) {
        uint32_t half = n / 2;

        if (at >= ranges[half].from && at < ranges[half].to)
            return true;
        if (at < ranges[half].from) {
            n = half;
        } else {
            ranges += half + 1;
            n -= half + 1;
        }
    }
    return false;
}

/* `site` is a return address: the instruction before it counts. */
static bool is_foreign(uint64_t site)
{
    return site <= lab->base || site > lab->end || is_within(lab->foreign, lab->n_foreign, site - 1 - lab->base);
}

/* The innermost address of the thread that lies in the program's own source. */
static uint64_t own_site(uint64_t site)
{
    const struct etch_lab_thread *t = &lab->thread[lab_me];

    for (uint64_t d = t->depth; d > 0 && d <= ETCH_LAB_FRAMES && is_foreign(site); d--)
        site = t->frames[d - 1];
    return site;
}

static bool is_at(const struct etch_lab_place *p, uint64_t offset, bool write)
{
    return (p->kind == ETCH_LAB_ANY || (p->kind == ETCH_LAB_WRITES) == write) &&
           is_within(&lab->ranges[p->first], p->n, offset);
}

/* A debugger is to halt at this access or call. */
static bool halts_at(uint32_t place, uint32_t count)
{
    return lab->halt_moment && lab->halt.place == place && lab->halt.visit == count &&
           (lab->halt_any || thread_of(&lab->halt) == lab_me);
}

bool lab_rules_arrive(uint64_t site, bool write)
{
    uint32_t *n = &n_arrived[lab_me];
    bool is_ruled = false;
    uint64_t own;

    if (!lab->n_places)
        return false;
    *n = 0;
    own = own_site(site);
    for (uint32_t i = 0; i < lab->n_places && !is_foreign(own); i++)
        if (is_at(&lab->places[i], own - 1 - lab->base, write)) {
            uint32_t count = ++counts[i][lab_me];

            lab_threads[lab_me].halts |= halts_at(i, count);
            if (i >= lab->n_ruled)
                continue;
            is_ruled = true;
            if (*n < ARRIVALS) {
                arrived[lab_me][*n].place = i;
                arrived[lab_me][(*n)++].count = count;
            }
        }
    return is_ruled && lab->n_rules;
}

bool lab_rules_named(uint32_t thread)
{
    return lab->n_rules && n_arrived[thread];
}

uint32_t lab_rules_arrival(uint32_t thread, uint32_t *place)
{
    if (!n_arrived[thread])
        return 0;
    *place = arrived[thread][n_arrived[thread] - 1].place;
    return arrived[thread][n_arrived[thread] - 1].count;
}

/* ---- Moments ---- */

/* The thread is about to execute the moment. `seen` counts the visits to its site so far. */
static bool is_next(const struct etch_lab_moment *m, uint32_t thread, uint64_t site, uint32_t seen)
{
    if (thread_of(m) != thread)
        return false;
    switch (m->what) {
    case ETCH_LAB_AT_SITE:
        return m->site == site && seen + 1 == m->visit;
    case ETCH_LAB_AT_PLACE:
        for (uint32_t i = 0; i < n_arrived[thread]; i++)
            if (arrived[thread][i].place == m->place && arrived[thread][i].count == m->visit)
                return true;
        return false;
    case ETCH_LAB_AT_BEGIN:
        return lab->thread[thread].points == 0;
    default:
        return false;
    }
}

void lab_rules_follow(uint32_t thread, uint64_t site)
{
    for (uint32_t i = 0; i < lab->n_rules; i++) {
        const struct etch_lab_rule *r = &lab->rules[i];

        if (is_next(&r->first, thread, site, visits[i].first))
            lab->rule_state[i] |= FIRST;
        if (is_next(&r->then, thread, site, visits[i].then) && !(lab->rule_state[i] & THEN)) {
            lab->rule_state[i] |= THEN;
            lab->kept += (lab->rule_state[i] & FIRST) != 0;
        }
        visits[i].first += r->first.site == site && thread_of(&r->first) == thread;
        visits[i].then += r->then.site == site && thread_of(&r->then) == thread;
    }
    n_arrived[thread] = 0;
}

static bool is_held_by(uint32_t rule, uint32_t thread)
{
    return !(lab->rule_state[rule] & (FIRST | THEN)) &&
           is_next(&lab->rules[rule].then, thread, lab->thread[thread].site, visits[rule].then);
}

bool lab_rules_hold(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_rules; i++) {
        uint32_t first = thread_of(&lab->rules[i].first);

        if (!is_held_by(i, thread))
            continue;
        lab->unkept = i + 1;
        if (first < lab->threads && lab_threads[first].state == LAB_DEAD)
            lab_stop(ETCH_LAB_INFEASIBLE);
        return true;
    }
    return false;
}

bool lab_rules_await(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_rules; i++) {
        uint32_t then = thread_of(&lab->rules[i].then);

        if (thread_of(&lab->rules[i].first) == thread && then < lab->threads && is_held_by(i, then))
            return true;
    }
    return false;
}

bool lab_rules_due(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_rules; i++)
        if (lab->rule_state[i] == FIRST &&
            is_next(&lab->rules[i].then, thread, lab->thread[thread].site, visits[i].then))
            return true;
    return false;
}

void lab_rules_end(uint32_t thread)
{
    for (uint32_t i = 0; i < lab->n_rules; i++) {
        const struct etch_lab_moment *m = &lab->rules[i].first;
        bool is_end = m->what == ETCH_LAB_AT_END || (m->what == ETCH_LAB_AT_SITE && !m->site);

        if (is_end && thread_of(m) == thread)
            lab->rule_state[i] |= FIRST;
    }
}
