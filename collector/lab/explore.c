/* SPDX-License-Identifier: MIT */
/* See lab_explore.h. */
#include "collector/lab_explore.h"

#include "base/time.h"
#include "collector/lab/choose.h"
#include "collector/lab/systematic.h"

#include <stdlib.h>
#include <string.h>

#define LEARNING 8 /* runs at the beginning whose points are still becoming known, at most */
#define BATCH 16   /* runs that use the same numbers of earlier runs, so that they can run at once */

/* Numbers of the last run that passed. */
struct facts {
    uint64_t length;
    uint64_t expected[ETCH_LAB_THREADS];
    struct etch_lab_event *events;
    uint32_t n_events;
};

/* A run that was started. */
struct ahead {
    struct etch_lab_running running;
    struct etch_lab_request request;
    uint64_t chosen[ETCH_LAB_CHOSEN], of_chosen[ETCH_LAB_THREADS];
    uint64_t sites; /* how many were known when the run was started */
};

struct search {
    const struct etch_lab_explore *about;
    struct etch_lab_found *found;
    struct etch_lab_request request; /* of the run that was last taken */
    uint64_t sites[ETCH_LAB_SITES], expected[ETCH_LAB_THREADS];
    uint64_t length;
    struct facts facts;         /* of this batch */
    uint64_t started, batch;    /* runs; the first one behind this batch */
    struct ahead ahead[BATCH];  /* run i is at i % BATCH */
    struct etch_lab_tree *tree; /* of an exhaustive search */
    bool in_tree;               /* the run that was started last is one of it */
    uint32_t quiet;             /* runs in a row that learnt nothing */
    uint64_t ends[64];
    double begin;
};

/* By a signal: the run that was going on was ended by etch, and says nothing. */
static bool is_stopped(const struct search *s)
{
    return s->about->request.stop && *s->about->request.stop;
}

static uint64_t count_sites(const uint64_t *table)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < ETCH_LAB_SITES; i++)
        n += table[i] != 0;
    return n;
}

/* An exit status other than 0, a signal, a hang. A run that was cut by a limit says nothing. */
static bool is_failure(const struct etch_lab_result *r)
{
    return r->end == ETCH_LAB_SIGNALED || r->end == ETCH_LAB_WRONG || r->end == ETCH_LAB_HUNG ||
           (r->end == ETCH_LAB_EXITED && r->number != 0);
}

/* After learning. No strategy finds all bugs, and each finds some soon. */
static const enum etch_lab_strategy_kind turns[] = {ETCH_LAB_SURW,   ETCH_LAB_POS,  ETCH_LAB_SURW,
                                                    ETCH_LAB_RANDOM, ETCH_LAB_SURW, ETCH_LAB_PCT};
enum { TURNS = sizeof(turns) / sizeof(turns[0]) };

static bool is_learning(const struct search *s, uint64_t i)
{
    return i < LEARNING && s->quiet < 2;
}

/* The first run is close to a run outside the lab. The next runs are random and learn the shared memory. */
static struct etch_lab_spec spec_of(const struct search *s, uint64_t i)
{
    bool learns = is_learning(s, i);
    struct etch_lab_spec spec = s->about->request.spec;

    if (!s->about->given)
        spec.kind = i == 0 ? ETCH_LAB_QUEUE : learns ? ETCH_LAB_RANDOM : turns[i % TURNS];
    spec.seed = s->about->seed + i;
    spec.length = s->facts.length;
    if (!spec.depth)
        spec.depth = 3;
    return spec;
}

/* How a run of surw looks for orders. No way finds all bugs. The seed says which one it is. */
static void choose(struct search *s, struct ahead *a)
{
    uint64_t seed = a->request.spec.seed;

    a->request.expected = s->facts.expected;
    a->request.n_chosen = 0;
    if (a->request.spec.kind != ETCH_LAB_SURW || s->about->whole)
        return;
    a->request.spec.strides = seed >> 1 & 1;
    a->request.spec.sticks = seed & 1;
    if (seed % 4 == seed / 4 % 4)
        return; /* all shared accesses are interesting */
    a->request.chosen = a->chosen;
    a->request.n_chosen =
        etch_lab_choose(s->facts.events, s->facts.n_events, seed, seed % 3 == 0 ? 2 : 1, a->chosen, a->of_chosen);
    if (a->request.n_chosen)
        a->request.expected = a->of_chosen;
}

static void keep_passing(struct etch_lab_found *f, const struct etch_lab_result *r)
{
    uint32_t n = r->shared->n_events;
    struct etch_lab_event *v = realloc(f->passing, (n + 1) * sizeof(*v));

    if (!v)
        return; /* the events of the run before serve as well */
    memcpy(v, r->shared->events, n * sizeof(*v));
    f->passing = v;
    f->n_passing = n;
}

static void learn(struct search *s, const struct etch_lab_result *r)
{
    uint64_t before = s->found->sites;

    memcpy(s->sites, r->shared->learnt, sizeof(s->sites));
    s->found->sites = count_sites(s->sites);
    s->quiet = s->found->sites == before ? s->quiet + 1 : 0;
    if (is_failure(r) || r->end != ETCH_LAB_EXITED)
        return;
    s->length = s->found->points = r->shared->points;
    keep_passing(s->found, r);
    for (uint32_t i = 0; i < ETCH_LAB_THREADS; i++)
        s->expected[i] = r->shared->thread[i].interesting;
}

bool etch_lab_schedule_keep_input(struct etch_lab_schedule *k, const struct etch_lab_shared *s)
{
    size_t words = s->journal_size / 8, n = s->points < ETCH_LAB_FLOWS ? s->points : ETCH_LAB_FLOWS;

    k->journal.n = k->flows.n = 0;
    if (!etch_array_reserve(&k->journal, words + 1) || !etch_array_reserve(&k->flows, n + 1))
        return false;
    memcpy(k->journal.v, s->journal, words * 8);
    k->journal.n = words;
    memcpy(k->flows.v, s->flow, n * sizeof(s->flow[0]));
    k->flows.n = n;
    k->answers = s->answers;
    k->cut = s->journal_lost != 0;
    return true;
}

static int keep(struct etch_lab_schedule *k, const struct search *s, const struct etch_lab_result *r,
                struct etch_error *err)
{
    uint32_t n = r->shared->n_segments;

    if (r->shared->segments_lost)
        return etch_error_set(err, "the failing run has more than %u switches, and cannot be kept", ETCH_LAB_SEGMENTS);
    k->sites = malloc(sizeof(s->sites));
    if (!k->sites || !etch_array_reserve(&k->segments, n + 1) || !k->segments.v)
        return etch_error_no_memory(err);
    memcpy(k->sites, r->shared->sites, sizeof(s->sites)); /* the access sites of this run's points */
    for (uint32_t i = 0; i < n; i++)
        k->segments.v[k->segments.n++] = r->shared->segments[i];
    if (!etch_lab_schedule_keep_input(k, r->shared))
        return etch_error_no_memory(err);
    k->asked = s->request.asked;
    k->spec = s->request.spec;
    k->points = r->shared->points;
    k->hash = r->shared->hash;
    k->end = r->end;
    k->number = r->number;
    return 0;
}

uint64_t etch_lab_failing_site(const struct etch_lab_result *r)
{
    return r->end == ETCH_LAB_SIGNALED || r->end == ETCH_LAB_WRONG ? r->shared->thread[r->shared->running].site : 0;
}

static uint64_t end_code(const struct etch_lab_result *r)
{
    return (uint64_t)r->end << 32 | (uint32_t)(r->end == ETCH_LAB_HUNG ? 0 : r->number);
}

static void count_distinct(struct search *s, const struct etch_lab_result *r)
{
    uint32_t n = s->found->distinct;

    for (uint32_t i = 0; i < n; i++)
        if (s->ends[i] == end_code(r))
            return;
    if (n < sizeof(s->ends) / sizeof(s->ends[0]))
        s->ends[s->found->distinct++] = end_code(r);
}

static bool is_partial(const struct etch_lab_shared *shared)
{
    return shared->sites_lost || shared->accesses_lost || shared->blocks_lost || shared->events_lost;
}

/* Returns 1 if the search goes on, 0 if it ends, -1 with `err` set. */
static int take(struct search *s, const struct etch_lab_result *r, struct etch_error *err)
{
    struct etch_lab_found *f = s->found;

    f->schedules++;
    f->hash = (f->hash ^ r->shared->hash) * UINT64_C(1099511628211);
    f->unended += r->end == ETCH_LAB_ENDLESS;
    f->partly += is_partial(r->shared);
    if (is_failure(r)) {
        f->failing++;
        count_distinct(s, r);
    }
    if (is_failure(r) && (!s->about->accept || s->about->accept(s->about->context, r))) {
        if (f->first && s->about->latest)
            etch_lab_schedule_release(&f->schedule);
        if ((!f->first || s->about->latest) && keep(&f->schedule, s, r, err) < 0)
            return -1;
        f->first = f->first ? f->first : f->schedules;
    }
    learn(s, r);
    if (s->about->observe && !s->about->observe(s->about->context, f->schedules, r))
        return 0;
    return (!f->first || s->about->all) && f->schedules < s->about->schedules &&
           (s->about->seconds <= 0 || etch_time_seconds() - s->begin < s->about->seconds);
}

/* ---- The exhaustive search ---- */

/* Parts of the run did not follow the choices, or the choices are not all known. */
static bool has_gap(const struct etch_lab_result *r)
{
    const struct etch_lab_shared *shared = r->shared;

    return r->end == ETCH_LAB_ENDLESS || r->end == ETCH_LAB_UNLIKE || shared->choices_lost || shared->uncontrolled ||
           shared->forks || is_partial(shared);
}

/* New instructions are new points: the search begins again. Returns 0, or -1 with `err` set. */
static int grow_tree(struct search *s, const struct etch_lab_result *r, uint64_t sites, struct etch_error *err)
{
    const struct etch_lab_shared *shared = r->shared;
    const struct etch_lab_course course = {shared->segments,  shared->n_segments, shared->choices,
                                           shared->n_choices, shared->events,     shared->n_events};

    if (!s->in_tree)
        return 0;
    if (s->found->sites != sites) {
        etch_lab_tree_restart(s->tree);
        s->found->covered = s->found->gaps = 0;
        return 0;
    }
    s->found->covered++;
    s->found->gaps += has_gap(r);
    return etch_lab_tree_add(s->tree, &course) ? 0 : etch_error_no_memory(err);
}

/* Sets the next schedule of the tree. False: there is none. */
static bool next_of_tree(struct search *s, struct etch_lab_request *request)
{
    s->in_tree = s->tree && !is_learning(s, s->started);
    if (!s->in_tree)
        return true;
    request->spec.kind = ETCH_LAB_STAY;
    request->keeps_choices = true;
    request->n_chosen = 0;
    s->found->complete = !etch_lab_tree_next(s->tree, &request->repeat, &request->n_repeat);
    s->found->level = etch_lab_tree_level(s->tree);
    s->found->equal = etch_lab_tree_skipped(s->tree);
    if (!request->n_repeat)
        request->repeat = NULL;
    return !s->found->complete;
}

/* ---- Runs ahead ----
 *
 * Run i depends on the instructions that the runs before it learnt, and on the numbers of its batch. Runs are started
 * ahead with the instructions that are known then, and taken in their order. If an earlier run learns an instruction,
 * the runs ahead are started anew. So the search is the same for any number of jobs. */

static bool begin_batch(struct search *s)
{
    uint32_t n = s->found->n_passing;
    struct etch_lab_event *v = realloc(s->facts.events, (n + 1) * sizeof(*v));

    if (!v)
        return false;
    s->facts.events = v;
    if (n)
        memcpy(v, s->found->passing, n * sizeof(*v));
    s->facts.n_events = n;
    s->facts.length = s->length;
    memcpy(s->facts.expected, s->expected, sizeof(s->expected));
    s->batch = s->found->schedules + (is_learning(s, s->found->schedules) ? 1 : BATCH);
    return true;
}

/* Returns 1 if a run was started, 0 if there is none to start, -1 with `err` set. */
static int start_ahead(struct search *s, struct etch_error *err)
{
    struct ahead *a = &s->ahead[s->started % BATCH];

    a->request = s->about->request;
    a->request.sites = s->sites;
    a->request.spec = spec_of(s, s->started);
    a->sites = s->found->sites;
    choose(s, a);
    if (!next_of_tree(s, &a->request))
        return 0;
    if (etch_lab_start(&a->running, &a->request, err) < 0)
        return -1;
    s->started++;
    return 1;
}

static void abandon(struct search *s)
{
    for (uint64_t i = s->found->schedules; i < s->started; i++)
        etch_lab_abandon(&s->ahead[i % BATCH].running);
    s->started = s->found->schedules;
}

/* Takes the next run. Returns as take() does. */
static int step(struct search *s, uint64_t jobs, struct etch_error *err)
{
    uint64_t i = s->found->schedules;
    struct ahead *a = &s->ahead[i % BATCH];
    uint64_t sites = s->found->sites;
    struct etch_lab_result r;
    int more = 1;

    if (i >= s->batch && !begin_batch(s))
        return etch_error_no_memory(err);
    if (s->started > i && a->sites != s->found->sites)
        abandon(s);
    while (s->started < i + jobs && s->started < s->batch && (s->started == i || s->started < s->about->schedules))
        if ((more = start_ahead(s, err)) <= 0)
            return more;
    if (etch_lab_finish(&r, &a->running, &a->request, err) < 0)
        return -1;
    s->request = a->request;
    more = is_stopped(s) ? 0 : take(s, &r, err);
    if (more > 0 && grow_tree(s, &r, sites, err) < 0)
        more = -1;
    etch_lab_result_release(&r);
    return more;
}

int etch_lab_explore(struct etch_lab_found *found, const struct etch_lab_explore *explore, struct etch_error *err)
{
    struct search *s = calloc(1, sizeof(*s));
    uint64_t jobs = explore->jobs < 1 ? 1 : explore->jobs < BATCH ? explore->jobs : BATCH;
    int more = 1;

    memset(found, 0, sizeof(*found));
    if (!s)
        return etch_error_no_memory(err);
    s->about = explore;
    s->found = found;
    if (explore->request.sites)
        memcpy(s->sites, explore->request.sites, sizeof(s->sites));
    if (explore->exhaustive) {
        jobs = 1;
        s->tree = etch_lab_tree_new(explore->preemptions);
        more = s->tree ? 1 : etch_error_no_memory(err);
    }
    s->begin = etch_time_seconds();
    while (more > 0)
        more = step(s, jobs, err);
    abandon(s);
    if (more == 0) {
        found->learnt = malloc(sizeof(s->sites));
        if (found->learnt)
            memcpy(found->learnt, s->sites, sizeof(s->sites));
    }
    etch_lab_tree_free(s->tree);
    free(s->facts.events);
    free(s);
    return more;
}

void etch_lab_found_release(struct etch_lab_found *found)
{
    free(found->passing);
    free(found->learnt);
    found->passing = NULL;
    found->learnt = NULL;
    etch_lab_schedule_release(&found->schedule);
}

void etch_lab_schedule_release(struct etch_lab_schedule *schedule)
{
    free(schedule->sites);
    etch_array_free(&schedule->segments);
    etch_array_free(&schedule->journal);
    etch_array_free(&schedule->flows);
    memset(schedule, 0, sizeof(*schedule));
}

int etch_lab_repeat(struct etch_lab_result *result, const struct etch_lab_schedule *schedule,
                    const struct etch_lab_request *like, bool *same, struct etch_error *err)
{
    struct etch_lab_request request = *like;

    request.spec = schedule->spec;
    request.sites = schedule->sites;
    request.expected = NULL;
    request.repeat = schedule->segments.v;
    request.n_repeat = (uint32_t)schedule->segments.n;
    request.asked = schedule->asked;
    request.feed = schedule->journal.v;
    request.feed_size = schedule->journal.n * sizeof(uint64_t);
    request.flows = schedule->flows.v;
    request.n_flows = (uint32_t)schedule->flows.n;
    if (etch_lab_run(result, &request, err) < 0)
        return -1;
    *same = result->end == schedule->end && (result->end == ETCH_LAB_HUNG || result->number == schedule->number) &&
            result->shared->points == schedule->points && result->shared->hash == schedule->hash &&
            !result->shared->strayed;
    return 0;
}
