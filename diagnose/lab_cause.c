/* SPDX-License-Identifier: MIT */
/* See lab_cause.h. */
#include "diagnose/lab_cause.h"

#include "base/log.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

#define SHORTENING 60u     /* runs, at most */
#define MORE_SCHEDULES 30u /* tried for a failing run that shows more than the first */
#define CLAIMS 24u         /* sets of orders that are enforced, at most */
#define STUCK 4u           /* runs in a row in which a set cannot be enforced: it never can */

typedef ETCH_ARRAY(struct etch_lab_segment) segments;

struct work {
    struct etch_lab_cause *cause;
    const struct etch_lab_schedule *failing;
    struct etch_lab_request request;
    uint64_t site; /* where the thread was that failed; 0: it hangs, all of them matter */
    struct etch_lab_event *events;
    uint32_t n_events;
    struct etch_lab_event *cured; /* of the last run that passed with an order turned round */
    uint32_t n_cured;
    struct etch_lab_events passing;
    struct etch_lab_budget budget;
    struct etch_lab_observer observer;
    struct etch_error *err;
};

/* ---- One experiment ---- */

enum outcome { BROKEN = -1, PASSED, FAILED, FAILED_OTHERWISE, UNKEPT };

static enum outcome judge(const struct work *w, const struct etch_lab_result *r)
{
    if (r->end == ETCH_LAB_EXITED && r->number == 0)
        return PASSED;
    if (r->end == ETCH_LAB_UNKEPT || r->end == ETCH_LAB_UNLIKE || r->end == ETCH_LAB_ENDLESS)
        return UNKEPT;
    if (r->end != w->failing->end || (r->end != ETCH_LAB_HUNG && r->number != w->failing->number))
        return FAILED_OTHERWISE;
    return w->site && etch_lab_failing_site(r) != w->site ? FAILED_OTHERWISE : FAILED;
}

static bool is_over(const struct work *w)
{
    const struct etch_lab_budget *b = &w->budget;

    return (b->runs && w->cause->runs >= b->runs) || (b->until > 0 && etch_time_seconds() > b->until) ||
           (b->is_over && b->is_over(b->context));
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

static bool keep_events(struct etch_lab_event **events, uint32_t *n_events, const struct etch_lab_result *r)
{
    uint32_t n = r->shared->n_events;
    struct etch_lab_event *v = realloc(*events, (n + 1) * sizeof(*v));

    if (!v)
        return false;
    memcpy(v, r->shared->events, n * sizeof(*v));
    *events = v;
    *n_events = n;
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
        good = copy_segments(shortest, r.shared->segments, r.shared->n_segments) &&
               keep_events(&w->events, &w->n_events, &r) &&
               etch_lab_schedule_keep_input(&w->cause->schedule, r.shared);
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
        for (size_t at = 0; at < shortest->n && w->cause->runs < SHORTENING && !is_over(w) && status >= 0;) {
            status = drop(shortest, at, n, &trial) ? 0 : etch_error_no_memory(w->err);
            if (status == 0)
                status = trial.n && trial.n < shortest->n ? attempt(w, &trial, shortest) : 0;
            at += status > 0 ? 0 : n;
        }
    etch_array_free(&trial);
    return status < 0 ? -1 : 0;
}

/* ---- Turning an order round ---- */

static struct etch_lab_events failing_events(const struct work *w)
{
    return (struct etch_lab_events){w->events, w->n_events};
}

static struct etch_lab_events cured_events(const struct work *w)
{
    return (struct etch_lab_events){w->cured, w->n_cured};
}

static const char *outcome_name(enum outcome outcome)
{
    static const char *const names[] = {"passes", "fails", "fails otherwise", "cannot be enforced"};

    return outcome >= 0 ? names[outcome] : "";
}

static void report(const struct work *w, const struct etch_lab_order *order, const struct etch_claim *claim,
                   enum outcome outcome)
{
    const struct etch_lab_trial trial = {order, claim, outcome_name(outcome)};

    if (order)
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "turned round: T%u %llx #%u before T%u %llx #%u%s: %s",
                 order->before.thread + 1, (unsigned long long)order->before.site, order->before.visit,
                 order->after.thread + 1, (unsigned long long)order->after.site, order->after.visit,
                 order->whole ? " whole" : "", trial.outcome);
    else
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "enforced: kind %d, orders %u %u (%u): %u+%u of %u fail",
                 claim->kind, claim->orders[0], claim->orders[1], claim->n, claim->alone.failed, claim->alone.otherwise,
                 claim->alone.of);
    if (w->observer.tried && outcome != BROKEN)
        w->observer.tried(w->observer.context, &trial);
}

/* Follows the failing schedule as far as the opposite of the order allows; another seed decides what comes then. */
static enum outcome run_turned(struct work *w, const struct etch_lab_order *o, uint32_t seed, bool keep)
{
    const struct etch_lab_rule rule = etch_order_turned(o);
    struct etch_lab_result r;
    enum outcome outcome;

    w->request.rules = &rule;
    w->request.n_rules = 1;
    w->request.spec = (struct etch_lab_spec){.kind = seed ? ETCH_LAB_RANDOM : ETCH_LAB_QUEUE, .seed = seed, .depth = 1};
    outcome = experiment(w, &r);
    w->request.rules = NULL;
    w->request.n_rules = 0;
    if (outcome == BROKEN)
        return BROKEN;
    if (outcome == PASSED && keep && !keep_events(&w->cured, &w->n_cured, &r))
        outcome = (enum outcome)etch_error_no_memory(w->err);
    etch_lab_result_release(&r);
    return outcome;
}

/* The thread is held at the access itself first. If that is not possible, because the thread holds a lock there that
 * the other thread needs, it is held a few events earlier. */
static enum outcome turn_once(struct work *w, struct etch_lab_order *o)
{
    enum outcome outcome = UNKEPT;

    o->hold_before = etch_moment_of(&o->before);
    for (uint32_t back = 0; back <= ETCH_ORDER_BACK && outcome == UNKEPT && !is_over(w); back++) {
        if (back && !etch_moment_back(failing_events(w), &o->before, back, &o->hold_before))
            break;
        outcome = run_turned(w, o, 0, true);
        if (outcome == PASSED && etch_order_holds(o, cured_events(w)))
            outcome = UNKEPT;
    }
    return outcome;
}

static void count(struct etch_lab_count *c, enum outcome outcome)
{
    if (outcome == UNKEPT || outcome == BROKEN)
        return;
    c->of++;
    c->failed += outcome == FAILED;
    c->otherwise += outcome == FAILED_OTHERWISE;
}

/* Turns the order round until it was so in `of` runs. Ends early if the program still fails. */
static int count_turned(struct work *w, const struct etch_lab_order *o, uint32_t of, struct etch_lab_count *c)
{
    for (uint32_t i = 0; c->of < of && i < 2 * of && !c->failed && !c->otherwise && !is_over(w); i++) {
        enum outcome outcome = run_turned(w, o, c->of + i, false);

        if (outcome == BROKEN)
            return -1;
        count(c, outcome);
    }
    return 0;
}

/* Returns 1 if the failure disappears with the order reversed, 0 if not, -1 with the error set. */
static int turn_round(struct work *w, struct etch_lab_order *o)
{
    enum outcome outcome = turn_once(w, o);

    report(w, o, NULL, outcome);
    if (outcome != PASSED && outcome != BROKEN && !is_over(w)) {
        o->whole = true;
        outcome = turn_once(w, o);
        report(w, o, NULL, outcome);
    }
    if (outcome != PASSED)
        return outcome == BROKEN ? -1 : 0;
    if (count_turned(w, o, ETCH_LAB_TRIES, &o->turned) < 0)
        return -1;
    return o->turned.of >= ETCH_LAB_TRIES / 2 && !o->turned.failed && !o->turned.otherwise;
}

/* The orders that are tried, and the runs that passed because one of them was turned round. */
struct turning {
    struct etch_lab_order tried[ETCH_ORDERS_MAX];
    uint32_t n;
    struct etch_lab_events cured[ETCH_LAB_ORDERS];
};

/* Turns orders round from `first` on. */
static int turn_from(struct work *w, struct turning *t, uint32_t first)
{
    struct etch_lab_cause *c = w->cause;
    int status = 0;

    for (uint32_t i = first; i < t->n && status >= 0 && c->orders.n < ETCH_LAB_ORDERS && !c->cut; i++) {
        c->n_tried++;
        status = turn_round(w, &t->tried[i]);
        c->cut = is_over(w);
        if (status <= 0)
            continue;
        t->cured[c->orders.n] = cured_events(w);
        c->orders.v[c->orders.n++] = t->tried[i];
        w->cured = NULL;
        w->n_cured = 0;
    }
    return status < 0 ? -1 : 0;
}

static void log_order(uint32_t i, const struct etch_lab_order *o)
{
    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "necessary %u: T%u %llx #%u before T%u %llx #%u%s%s", i,
             o->before.thread + 1, (unsigned long long)o->before.site, o->before.visit, o->after.thread + 1,
             (unsigned long long)o->after.site, o->after.visit, o->whole ? " whole" : "", o->absent ? " absent" : "");
}

/* Notes what turning each order round does to the others. */
static void note_chain(struct etch_lab_orders *orders, const struct turning *t)
{
    for (uint32_t i = 0; i < orders->n; i++) {
        log_order(i, &orders->v[i]);
        for (uint32_t k = 0; k < orders->n; k++) {
            orders->holds[i][k] = etch_order_holds(&orders->v[k], t->cured[i]);
            if (orders->holds[i][k])
                etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "  order %u holds then", k);
        }
    }
}

/* Turns all orders round, the last before the failure first. Then those that the failing run did not reach: the runs
 * that have passed are the nearest to the failing run, and show them. */
static int turn_all(struct work *w)
{
    struct turning *t = calloc(1, sizeof(*t));
    struct etch_lab_orders *orders = &w->cause->orders;
    int status;

    if (!t)
        return etch_error_no_memory(w->err);
    t->n = etch_orders_list(t->tried, failing_events(w), w->passing);
    status = turn_from(w, t, 0);
    for (uint32_t i = 0, n; i < orders->n && status == 0; i++) {
        n = t->n;
        t->n = etch_orders_add_absent(t->tried, t->n, failing_events(w), t->cured[i]);
        status = turn_from(w, t, n);
    }
    note_chain(orders, t);
    for (uint32_t i = 0; i < orders->n; i++)
        free((void *)(uintptr_t)t->cured[i].v);
    free(t);
    return status;
}

/* ---- Enforcing orders ---- */

/* Schedules of all kinds: an order that is enough for the failure is enough under each of them. */
static struct etch_lab_spec spec_of(uint32_t i)
{
    static const enum etch_lab_strategy_kind kinds[] = {ETCH_LAB_QUEUE, ETCH_LAB_RANDOM, ETCH_LAB_PCT, ETCH_LAB_POS,
                                                        ETCH_LAB_SURW};

    return (struct etch_lab_spec){.kind = kinds[i % (sizeof(kinds) / sizeof(kinds[0]))], .seed = 1000 + i, .depth = 3};
}

static enum outcome run_enforced(struct work *w, const struct etch_claim *c, uint32_t i)
{
    const struct etch_lab_segment *repeat = w->request.repeat;
    struct etch_lab_rule rules[ETCH_LAB_RULES];
    struct etch_lab_result r;
    enum outcome outcome;

    for (uint32_t k = 0; k < c->n; k++)
        rules[k] = etch_order_kept(&w->cause->orders.v[c->orders[k]]);
    w->request.rules = rules;
    w->request.n_rules = c->n;
    w->request.repeat = NULL;
    w->request.spec = spec_of(i);
    outcome = experiment(w, &r);
    w->request.rules = NULL;
    w->request.n_rules = 0;
    w->request.repeat = repeat;
    if (outcome != BROKEN)
        etch_lab_result_release(&r);
    return outcome;
}

/* Moves the places where threads are held back by one event. Returns false if there is none. */
static bool hold_earlier(struct work *w, const struct etch_claim *c, uint32_t back)
{
    bool any = false;

    for (uint32_t k = 0; k < c->n; k++) {
        struct etch_lab_order *o = &w->cause->orders.v[c->orders[k]];
        struct etch_lab_events of = o->absent ? w->passing : failing_events(w);

        any |= etch_moment_back(of, &o->after, back, &o->hold_after);
    }
    return any;
}

static void hold_here(struct work *w, const struct etch_claim *c)
{
    for (uint32_t k = 0; k < c->n; k++) {
        struct etch_lab_order *o = &w->cause->orders.v[c->orders[k]];

        o->hold_after = etch_moment_of(&o->after);
    }
}

/* Enforces the set until it was so in ETCH_CLAIM_TRIES runs, or until a run passes. */
static int enforce(struct work *w, struct etch_claim *c)
{
    uint32_t stuck = 0, back = 0;
    enum outcome outcome = PASSED;

    hold_here(w, c);
    for (uint32_t i = 0; c->alone.of < ETCH_CLAIM_TRIES && i < 3 * ETCH_CLAIM_TRIES && !is_over(w); i++) {
        outcome = run_enforced(w, c, i);
        if (outcome == BROKEN)
            return -1;
        count(&c->alone, outcome);
        if (outcome == PASSED)
            break;
        stuck = outcome == UNKEPT && !c->alone.of ? stuck + 1 : 0;
        if (stuck >= STUCK) {
            if (++back > ETCH_ORDER_BACK || !hold_earlier(w, c, back))
                break;
            stuck = 0;
        }
    }
    report(w, NULL, c, outcome);
    return 0;
}

/* Turns each order of the claim round, as often as the word proven asks for. */
static int confirm_turned(struct work *w, struct etch_claim *c)
{
    uint32_t each = (ETCH_CLAIM_TRIES + c->n - 1) / c->n;

    c->turned = (struct etch_lab_count){0};
    for (uint32_t k = 0; k < c->n; k++) {
        struct etch_lab_order *o = &w->cause->orders.v[c->orders[k]];

        if (count_turned(w, o, each > ETCH_LAB_TRIES ? each : ETCH_LAB_TRIES, &o->turned) < 0)
            return -1;
        c->turned.of += o->turned.of;
        c->turned.failed += o->turned.failed;
        c->turned.otherwise += o->turned.otherwise;
    }
    return 0;
}

static bool is_enough(const struct etch_claim *c)
{
    return c->alone.of >= ETCH_CLAIM_TRIES && c->alone.failed + c->alone.otherwise == c->alone.of;
}

/* Leaves out the orders that a set does not need, one at a time. */
static int reduce(struct work *w, struct etch_claim *c)
{
    for (uint32_t i = 0; i < c->n && c->n > 2 && c->kind != ETCH_CLAIM_RING && !is_over(w);) {
        struct etch_claim less = etch_claim_without(&w->cause->orders, c, i);

        if (less.n && enforce(w, &less) < 0)
            return -1;
        if (less.n && is_enough(&less))
            *c = less;
        else
            i++;
    }
    return 0;
}

/* Enforces the sets that are left, the best first, until one is proven. */
static int choose_claim(struct work *w)
{
    struct etch_claim *list = calloc(CLAIMS, sizeof(*list)), *answer = &w->cause->claim;
    uint32_t n = list ? etch_claims_list(&w->cause->orders, list, CLAIMS) : 0;
    int status = list ? 0 : etch_error_no_memory(w->err);

    if (w->cause->orders.n)
        *answer = etch_claim_of_source(&w->cause->orders);
    for (uint32_t i = 0; i < n && status == 0 && !etch_claim_is_proven(answer) && !is_over(w); i++) {
        struct etch_claim *c = &list[i];

        status = enforce(w, c);
        if (status == 0 && is_enough(c))
            status = reduce(w, c) < 0 ? -1 : confirm_turned(w, c);
        if (etch_claim_is_proven(c) || (c->kind != ETCH_CLAIM_SET && 2 * c->alone.failed > c->alone.of &&
                                        c->alone.of > 4 && etch_claim_bound(c) > etch_claim_bound(answer)))
            *answer = *c;
    }
    if (status == 0 && answer->n && !answer->alone.of)
        status = enforce(w, answer);
    if (status == 0 && answer->n && !answer->turned.of)
        status = confirm_turned(w, answer);
    free(list);
    return status;
}

/* ---- All of it ---- */

/* Where the threads of a hang wait for others to wake them. */
static void note_waits(struct etch_lab_orders *o, const struct etch_lab_result *r)
{
    for (uint32_t i = 0; r->end == ETCH_LAB_HUNG && i < r->shared->threads && o->n_waits < ETCH_LAB_ORDERS; i++) {
        const struct etch_lab_thread *t = &r->shared->thread[i];

        if (t->wait == ETCH_LAB_CONDITION || t->wait == ETCH_LAB_SEMAPHORE || t->wait == ETCH_LAB_FUTEX)
            o->waits[o->n_waits++] = (struct etch_lab_moment){.site = t->site, .thread = i};
    }
}

static int find(struct work *w, segments *shortest)
{
    const struct etch_lab_schedule *failing = w->failing;
    segments all = {0};
    int status = copy_segments(&all, failing->segments.v, failing->segments.n) ? attempt(w, &all, shortest)
                                                                               : etch_error_no_memory(w->err);

    if (status > 0 && shorten(w, shortest) == 0) {
        w->request.repeat = shortest->v;
        w->request.n_repeat = (uint32_t)shortest->n;
        status = turn_all(w) < 0 || choose_claim(w) < 0 ? -1 : 0;
    }
    etch_array_free(&all);
    return status;
}

int etch_lab_find_cause(struct etch_lab_cause *cause, const struct etch_lab_schedule *failing,
                        const struct etch_lab_request *like, struct etch_lab_events passing,
                        const struct etch_lab_budget *budget, const struct etch_lab_observer *observer,
                        struct etch_error *err)
{
    struct work w = {.cause = cause, .failing = failing, .request = *like, .passing = passing, .budget = *budget};
    struct etch_lab_result first;
    segments shortest = {0};
    bool same;
    int status;

    memset(cause, 0, sizeof(*cause));
    w.err = err;
    if (observer)
        w.observer = *observer;
    if (etch_lab_repeat(&first, failing, like, &same, err) < 0)
        return -1;
    w.site = etch_lab_failing_site(&first);
    cause->orders.hangs = first.end == ETCH_LAB_HUNG;
    note_waits(&cause->orders, &first);
    cause->sites = failing->sites;
    cause->base = first.shared->base;
    cause->end = first.shared->end;
    etch_lab_result_release(&first);
    w.request.sites = failing->sites;
    w.request.expected = NULL;
    w.request.loosely = true;
    w.request.spec = (struct etch_lab_spec){.kind = ETCH_LAB_QUEUE, .depth = 1};
    status = find(&w, &shortest);
    cause->schedule.segments.v = shortest.v;
    cause->schedule.segments.n = shortest.n;
    cause->schedule.segments.capacity = shortest.capacity;
    free(w.events);
    free(w.cured);
    return status < 0 ? -1 : 0;
}

void etch_lab_cause_release(struct etch_lab_cause *cause)
{
    etch_lab_schedule_release(&cause->schedule);
}

int etch_lab_experiment(struct etch_lab_experiment *e, const struct etch_lab_found *f,
                        const struct etch_lab_explore *explore, const struct etch_lab_budget *budget,
                        const struct etch_lab_observer *observer, struct etch_error *err)
{
    struct etch_lab_explore again = *explore;
    bool better;

    memset(e, 0, sizeof(*e));
    again.request.sites = f->learnt;
    again.schedules = MORE_SCHEDULES;
    again.all = again.latest = true;
    again.given = again.whole = true;
    again.request.spec = (struct etch_lab_spec){.kind = ETCH_LAB_SURW, .depth = 3};
    if (etch_lab_explore(&e->known, &again, err) < 0)
        return -1;
    better =
        e->known.first && e->known.schedule.end == f->schedule.end && e->known.schedule.number == f->schedule.number;
    const struct etch_lab_found *from = better ? &e->known : f;
    return etch_lab_find_cause(&e->cause, &from->schedule, &explore->request,
                               (struct etch_lab_events){from->passing, from->n_passing}, budget, observer, err);
}

void etch_lab_experiment_release(struct etch_lab_experiment *e)
{
    etch_lab_found_release(&e->known);
    etch_lab_cause_release(&e->cause);
}
