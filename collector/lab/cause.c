/* SPDX-License-Identifier: MIT */
/* See lab_cause.h. */
#include "collector/lab_cause.h"

#include <stdlib.h>
#include <string.h>

#define SHORTENING 150u    /* runs, at most */
#define MORE_SCHEDULES 40u /* tried for a failing run that shows more than the first */
#define PAIRS 32u          /* that are turned round, at most: the last ones before the failure */

typedef ETCH_ARRAY(struct etch_lab_segment) segments;

struct work {
    struct etch_lab_cause *cause;
    const struct etch_lab_schedule *failing;
    struct etch_lab_request request;
    uint64_t site; /* where the thread was that failed; 0: it hangs, all of them matter */
    struct etch_lab_event *events;
    uint32_t n_events;
    const struct etch_lab_event *passing;
    uint32_t n_passing;
    struct etch_error *err;
};

/* ---- One experiment ---- */

enum outcome { BROKEN = -1, PASSED, FAILED, FAILED_OTHERWISE, UNKEPT };

static uint64_t failing_site(const struct etch_lab_result *r)
{
    return r->end == ETCH_LAB_SIGNALED || r->end == ETCH_LAB_WRONG ? r->shared->thread[r->shared->running].site : 0;
}

static enum outcome judge(const struct work *w, const struct etch_lab_result *r)
{
    if (r->end == ETCH_LAB_EXITED && r->number == 0)
        return PASSED;
    if (r->end == ETCH_LAB_UNKEPT || r->end == ETCH_LAB_UNLIKE || r->end == ETCH_LAB_ENDLESS)
        return UNKEPT;
    if (r->end != w->failing->end || (r->end != ETCH_LAB_HUNG && r->number != w->failing->number))
        return FAILED_OTHERWISE;
    return w->site && failing_site(r) != w->site ? FAILED_OTHERWISE : FAILED;
}

/* Runs once. The caller releases `r` unless the outcome is BROKEN. */
static enum outcome experiment(struct work *w, struct etch_lab_result *r)
{
    w->cause->runs++;
    return etch_lab_run(r, &w->request, w->err) < 0 ? BROKEN : judge(w, r);
}

/* ---- Shortening ---- */

static bool add_segment(segments *to, struct etch_lab_segment s)
{
    if (to->n && to->v[to->n - 1].thread == s.thread) {
        to->v[to->n - 1].count += s.count;
        return true;
    }
    return etch_array_push(to, s);
}

/* Copies the segments without the `n` segments from `at` on. The points of a dropped segment are added to the next
 * segment of the same thread. */
static bool drop(const segments *from, size_t at, size_t n, segments *to)
{
    to->n = 0;
    for (size_t i = 0; i < from->n; i++) {
        struct etch_lab_segment s = from->v[i];

        if (i >= at && i < at + n)
            continue;
        for (size_t k = at; i >= at + n && k < at + n; k++) {
            bool first = from->v[k].thread == s.thread;

            for (size_t j = at + n; j < i && first; j++)
                first = from->v[j].thread != s.thread;
            s.count += first ? from->v[k].count : 0;
        }
        if (!add_segment(to, s))
            return false;
    }
    return true;
}

static bool copy_segments(segments *to, const struct etch_lab_segment *v, size_t n)
{
    to->n = 0;
    if (!etch_array_reserve(to, n + 1) || !to->v)
        return false;
    for (size_t i = 0; i < n; i++)
        to->v[to->n++] = v[i];
    return true;
}

static bool keep_events(struct work *w, const struct etch_lab_result *r)
{
    uint32_t n = r->shared->n_events;
    struct etch_lab_event *v = realloc(w->events, (n + 1) * sizeof(*v));

    if (!v)
        return false;
    memcpy(v, r->shared->events, n * sizeof(*v));
    w->events = v;
    w->n_events = n;
    return true;
}

/* Tries a schedule. If the run fails in the same way and is shorter, the segments that really ran become the schedule.
 * Returns 1 if so, 0 if not, -1 with the error set. */
static int attempt(struct work *w, const segments *trial, segments *shortest)
{
    struct etch_lab_result r;
    enum outcome outcome;
    bool good = true, shorter = false;

    w->request.repeat = trial->v;
    w->request.n_repeat = (uint32_t)trial->n;
    outcome = experiment(w, &r);
    if (outcome == BROKEN)
        return -1;
    if (outcome == FAILED && (!shortest->n || r.shared->n_segments < shortest->n)) {
        shorter = true;
        good = copy_segments(shortest, r.shared->segments, r.shared->n_segments) && keep_events(w, &r);
        w->cause->schedule.points = r.shared->points;
        w->cause->schedule.hash = r.shared->hash;
    }
    etch_lab_result_release(&r);
    return good ? shorter : etch_error_no_memory(w->err);
}

/* Halves, quarters, ... single segments, as long as something can be left out. */
static int shorten(struct work *w, segments *shortest)
{
    segments trial = {0};
    int status = 0;

    for (size_t n = shortest->n / 2; n >= 1 && status >= 0; n /= 2)
        for (size_t at = 0; at < shortest->n && w->cause->runs < SHORTENING && status >= 0;) {
            status = drop(shortest, at, n, &trial) ? 0 : etch_error_no_memory(w->err);
            if (status == 0)
                status = trial.n && trial.n < shortest->n ? attempt(w, &trial, shortest) : 0;
            at += status > 0 ? 0 : n;
        }
    etch_array_free(&trial);
    return status < 0 ? -1 : 0;
}

/* ---- Orders ---- */

static bool is_conflict(const struct etch_lab_event *a, const struct etch_lab_event *b)
{
    return a->thread != b->thread && a->object && a->object == b->object && (a->write || b->write) && a->visit &&
           b->visit;
}

static bool is_same_moment(const struct etch_lab_event *a, const struct etch_lab_event *b)
{
    return a->site == b->site && a->thread == b->thread && a->visit == b->visit;
}

static bool is_known(const struct etch_lab_order *v, uint32_t n, const struct etch_lab_event *a,
                     const struct etch_lab_event *b)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].before.site == a->site && v[i].after.site == b->site && v[i].before.thread == a->thread &&
            v[i].after.thread == b->thread)
            return true;
    return false;
}

/* Lists pairs of the failing run, the last first. A pair is an access and the nearest conflicting access before it. */
static uint32_t list_present(const struct work *w, struct etch_lab_order *v)
{
    uint32_t n = 0;

    for (uint32_t k = w->n_events; k-- > 0 && n < PAIRS;)
        for (uint32_t i = k; i-- > 0;) {
            const struct etch_lab_event *a = &w->events[i], *b = &w->events[k];

            if (!is_conflict(a, b))
                continue;
            if (!is_known(v, n, a, b))
                v[n++] = (struct etch_lab_order){.before = *a, .after = *b};
            break;
        }
    return n;
}

static bool happened(const struct work *w, const struct etch_lab_event *e)
{
    for (uint32_t i = 0; i < w->n_events; i++)
        if (is_same_moment(&w->events[i], e))
            return true;
    return false;
}

/* The second access of a pair may be missing because the program failed first: a use before the initialisation. A
 * passing run has both accesses in the other order. */
static uint32_t list_absent(const struct work *w, struct etch_lab_order *v, uint32_t n)
{
    for (uint32_t k = w->n_passing; k-- > 0 && n < 2 * PAIRS;)
        for (uint32_t i = k; i-- > 0;) {
            const struct etch_lab_event *early = &w->passing[i], *late = &w->passing[k];

            if (!is_conflict(early, late) || happened(w, early) || !happened(w, late))
                continue;
            if (!is_known(v, n, late, early))
                v[n++] = (struct etch_lab_order){.before = *late, .after = *early, .absent = true};
            break;
        }
    return n;
}

static struct etch_lab_rule rule_of(const struct etch_lab_event *first, const struct etch_lab_event *then)
{
    return (struct etch_lab_rule){{first->site, first->thread, first->visit}, {then->site, then->thread, then->visit}};
}

/* Runs with the rules, each time with another seed, and counts. With `guided` a run follows the failing schedule as far
 * as the rules allow. */
static int try_rules(struct work *w, bool guided, uint32_t tries, struct etch_lab_count *count)
{
    for (uint32_t i = 0; i < tries; i++) {
        struct etch_lab_result r;
        enum outcome outcome;

        w->request.spec = (struct etch_lab_spec){.kind = i ? ETCH_LAB_RANDOM : ETCH_LAB_QUEUE, .seed = i, .depth = 1};
        outcome = experiment(w, &r);
        if (outcome == BROKEN)
            return -1;
        /* Enforced: both moments must have come in that order, unless the run failed before the second could. */
        if (outcome != UNKEPT && (guided || outcome == FAILED || r.shared->kept >= w->request.n_rules)) {
            count->of++;
            count->failed += outcome == FAILED;
            count->otherwise += outcome == FAILED_OTHERWISE;
        }
        etch_lab_result_release(&r);
    }
    return 0;
}

static int count_failures(struct work *w, const struct etch_lab_rule *rules, uint32_t n, bool guided, uint32_t tries,
                          struct etch_lab_count *count)
{
    const struct etch_lab_segment *repeat = w->request.repeat;
    int status;

    w->request.rules = rules;
    w->request.n_rules = n;
    w->request.repeat = guided ? repeat : NULL;
    status = try_rules(w, guided, tries, count);
    w->request.rules = NULL;
    w->request.n_rules = 0;
    w->request.repeat = repeat;
    return status;
}

struct etch_lab_rule etch_lab_order_turned(const struct etch_lab_order *o)
{
    struct etch_lab_rule rule = rule_of(&o->after, &o->before);

    if (o->whole)
        rule.first = (struct etch_lab_moment){.thread = o->after.thread};
    return rule;
}

/* True if the program passes with the order reversed, once. */
static int passes_turned(struct work *w, const struct etch_lab_order *o)
{
    const struct etch_lab_rule turned = etch_lab_order_turned(o);
    struct etch_lab_count once = {0};

    if (count_failures(w, &turned, 1, true, 1, &once) < 0)
        return -1;
    return once.of && !once.failed && !once.otherwise;
}

/* Returns 1 if the failure disappears with the order reversed, 0 if not, -1 with the error set. */
static int turn_round(struct work *w, struct etch_lab_order *o)
{
    const struct etch_lab_rule kept = rule_of(&o->before, &o->after);
    struct etch_lab_rule turned;
    int passes = passes_turned(w, o);

    if (passes == 0) {
        o->whole = true;
        passes = passes_turned(w, o);
    }
    if (passes <= 0)
        return passes;
    turned = etch_lab_order_turned(o);
    if (count_failures(w, &turned, 1, true, ETCH_LAB_TRIES, &o->turned) < 0 ||
        count_failures(w, &kept, 1, false, ETCH_LAB_TRIES, &o->alone) < 0)
        return -1;
    return o->turned.of && 2 * (o->turned.failed + o->turned.otherwise) < o->turned.of;
}

bool etch_lab_order_is_proven(const struct etch_lab_order *o)
{
    return o->turned.of >= ETCH_LAB_TRIES / 2 && !o->turned.failed && !o->turned.otherwise &&
           o->alone.of >= ETCH_LAB_TRIES / 2 && o->alone.failed == o->alone.of;
}

/* Orders that make the program fail most often come first, then orders whose reversal fails least often. */
static int by_strength(const void *x, const void *y)
{
    const struct etch_lab_order *a = x, *b = y;
    double sa = a->alone.of ? (double)a->alone.failed / a->alone.of : 0;
    double sb = b->alone.of ? (double)b->alone.failed / b->alone.of : 0;

    if (sa != sb)
        return sa > sb ? -1 : 1;
    if (a->turned.failed + a->turned.otherwise != b->turned.failed + b->turned.otherwise)
        return a->turned.failed + a->turned.otherwise < b->turned.failed + b->turned.otherwise ? -1 : 1;
    return 0;
}

static int turn_all(struct work *w)
{
    struct etch_lab_order tried[2 * PAIRS];
    struct etch_lab_cause *c = w->cause;
    int status = 0;

    c->n_tried = list_absent(w, tried, list_present(w, tried));
    for (uint32_t i = 0; i < c->n_tried && status >= 0; i++) {
        status = turn_round(w, &tried[i]);
        if (status > 0 && c->n_orders < ETCH_LAB_ORDERS)
            c->orders[c->n_orders++] = tried[i];
    }
    qsort(c->orders, c->n_orders, sizeof(c->orders[0]), by_strength);
    return status < 0 ? -1 : 0;
}

/* An atomicity violation needs two orders at once. */
static int enforce_all(struct work *w)
{
    struct etch_lab_rule rules[ETCH_LAB_RULES];
    uint32_t n = w->cause->n_orders < ETCH_LAB_RULES ? w->cause->n_orders : ETCH_LAB_RULES;

    for (uint32_t i = 0; i < n; i++)
        rules[i] = rule_of(&w->cause->orders[i].before, &w->cause->orders[i].after);
    return n < 2 ? 0 : count_failures(w, rules, n, false, ETCH_LAB_TRIES, &w->cause->together);
}

int etch_lab_find_cause(struct etch_lab_cause *cause, const struct etch_lab_schedule *failing,
                        const struct etch_lab_request *like, const struct etch_lab_event *passing, uint32_t n_passing,
                        struct etch_error *err)
{
    struct work w = {.cause = cause, .failing = failing, .request = *like, .passing = passing, .n_passing = n_passing};
    segments all = {0}, shortest = {0};
    struct etch_lab_result first;
    bool same;
    int status;

    memset(cause, 0, sizeof(*cause));
    w.err = err;
    if (etch_lab_repeat(&first, failing, like, &same, err) < 0)
        return -1;
    w.site = failing_site(&first);
    cause->sites = failing->sites;
    cause->base = first.shared->base;
    cause->end = first.shared->end;
    etch_lab_result_release(&first);
    w.request.sites = failing->sites;
    w.request.expected = NULL;
    w.request.loosely = true;
    w.request.spec = (struct etch_lab_spec){.kind = ETCH_LAB_QUEUE, .depth = 1};
    status = copy_segments(&all, failing->segments.v, failing->segments.n) ? attempt(&w, &all, &shortest)
                                                                           : etch_error_no_memory(err);
    if (status > 0 && shorten(&w, &shortest) == 0) {
        w.request.repeat = shortest.v;
        w.request.n_repeat = (uint32_t)shortest.n;
        status = turn_all(&w) < 0 || enforce_all(&w) < 0 ? -1 : 0;
    }
    cause->schedule.segments.v = shortest.v;
    cause->schedule.segments.n = shortest.n;
    cause->schedule.segments.capacity = shortest.capacity;
    etch_array_free(&all);
    free(w.events);
    return status < 0 ? -1 : 0;
}

void etch_lab_cause_release(struct etch_lab_cause *cause)
{
    etch_lab_schedule_release(&cause->schedule);
}

int etch_lab_experiment(struct etch_lab_experiment *e, const struct etch_lab_found *f,
                        const struct etch_lab_explore *explore, struct etch_error *err)
{
    struct etch_lab_explore again = *explore;
    bool better;

    memset(e, 0, sizeof(*e));
    again.request.sites = f->learnt;
    again.schedules = MORE_SCHEDULES;
    again.all = again.latest = true;
    again.given = true;
    again.request.spec = (struct etch_lab_spec){.kind = ETCH_LAB_SURW, .depth = 3};
    if (etch_lab_explore(&e->known, &again, err) < 0)
        return -1;
    better =
        e->known.first && e->known.schedule.end == f->schedule.end && e->known.schedule.number == f->schedule.number;
    return etch_lab_find_cause(&e->cause, better ? &e->known.schedule : &f->schedule, &explore->request,
                               better ? e->known.passing : f->passing, better ? e->known.n_passing : f->n_passing, err);
}

void etch_lab_experiment_release(struct etch_lab_experiment *e)
{
    etch_lab_found_release(&e->known);
    etch_lab_cause_release(&e->cause);
}
