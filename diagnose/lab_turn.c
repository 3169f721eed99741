/* SPDX-License-Identifier: MIT */
/* Turns the orders of a failing schedule round, one at a time; see lab_work.h. */
#include "diagnose/lab_work.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define SEEDS 2u    /* of runs in which the same two statements come in that order once more */
#define TURNING 50u /* per cent of the runs: the rest is for the proof */

/* ---- One order ---- */

static struct etch_lab_events cured_events(const struct etch_lab_work *w)
{
    return (struct etch_lab_events){w->cured, w->n_cured};
}

/* A run in which the two statements come in that order again, elsewhere, shows nothing if it fails: the order was not
 * turned round there. */
static bool shows_nothing(const struct etch_lab_order *o, const struct etch_lab_result *r)
{
    const struct etch_lab_events run = {r->shared->events, r->shared->n_events};

    return etch_order_recurs(o, run);
}

/* Follows the failing schedule as far as the opposite of the order allows; another seed decides what comes then. */
static enum etch_lab_verdict run_turned(struct etch_lab_work *w, const struct etch_lab_order *o, uint32_t seed,
                                        bool keep, bool *again)
{
    const struct etch_lab_rule rule = etch_order_turned(o);
    struct etch_lab_result r;
    enum etch_lab_verdict verdict;

    *again = false;
    w->request.rules = &rule;
    w->request.n_rules = 1;
    w->request.spec = (struct etch_lab_spec){.kind = seed ? ETCH_LAB_RANDOM : ETCH_LAB_QUEUE, .seed = seed, .depth = 1};
    verdict = etch_lab_experiment_once(w, &r);
    w->request.rules = NULL;
    w->request.n_rules = 0;
    if (verdict == ETCH_LAB_BROKEN)
        return ETCH_LAB_BROKEN;
    if (verdict == ETCH_LAB_PASSED && keep && !etch_lab_work_keep(&w->cured, &w->n_cured, &r))
        verdict = (enum etch_lab_verdict)etch_error_no_memory(w->err);
    if ((verdict == ETCH_LAB_FAILED || verdict == ETCH_LAB_FAILED_OTHERWISE) && shows_nothing(o, &r)) {
        verdict = ETCH_LAB_NOT_KEPT;
        *again = true;
    }
    etch_lab_result_release(&r);
    return verdict;
}

int etch_lab_turn_again(struct etch_lab_work *w, const struct etch_lab_order *o, uint32_t seed,
                        struct etch_lab_count *c)
{
    bool again;
    enum etch_lab_verdict verdict = run_turned(w, o, seed, false, &again);

    etch_lab_count_add(c, verdict);
    return verdict == ETCH_LAB_BROKEN ? -1 : 0;
}

static enum etch_lab_verdict turn_seeds(struct etch_lab_work *w, struct etch_lab_order *o)
{
    enum etch_lab_verdict verdict = ETCH_LAB_NOT_KEPT;
    bool again = true;

    for (uint32_t seed = 0; seed < (o->whole ? 1 : SEEDS) && again && !etch_lab_work_is_over(w); seed++)
        verdict = run_turned(w, o, seed, true, &again);
    if (verdict == ETCH_LAB_PASSED && etch_order_holds(o, cured_events(w)))
        return ETCH_LAB_NOT_KEPT;
    return again ? ETCH_LAB_FAILED : verdict;
}

/* The thread is held at the access itself first, or where it takes the lock that both threads hold. If that is not
 * possible, it is held at an earlier synchronisation. */
static enum etch_lab_verdict turn_once(struct etch_lab_work *w, struct etch_lab_order *o)
{
    const struct etch_lab_moment listed = o->hold_before;
    enum etch_lab_verdict verdict = turn_seeds(w, o);

    for (uint32_t back = 1; back <= ETCH_ORDER_BACK && verdict == ETCH_LAB_NOT_KEPT && !etch_lab_work_is_over(w);
         back++) {
        if (!etch_moment_back(etch_lab_work_events(w), &o->before, back, &o->hold_before))
            break;
        if (memcmp(&o->hold_before, &listed, sizeof(listed)) != 0)
            verdict = turn_seeds(w, o);
    }
    if (verdict != ETCH_LAB_PASSED)
        o->hold_before = listed;
    return verdict;
}

int etch_lab_count_turned(struct etch_lab_work *w, const struct etch_lab_order *o, uint32_t of,
                          struct etch_lab_count *c)
{
    for (uint32_t i = 0; c->of < of && i < 2 * of && !c->failed && !c->otherwise && !etch_lab_work_is_over(w); i++) {
        bool again;
        enum etch_lab_verdict verdict = run_turned(w, o, c->of + i, false, &again);

        if (verdict == ETCH_LAB_BROKEN)
            return -1;
        etch_lab_count_add(c, verdict);
    }
    return 0;
}

/* Returns 1 if the failure disappears with the order reversed, 0 if not, -1 with the error set. */
static int turn_round(struct etch_lab_work *w, struct etch_lab_order *o)
{
    enum etch_lab_verdict verdict = turn_once(w, o);

    etch_lab_work_report(w, o, NULL, verdict);
    if ((verdict == ETCH_LAB_FAILED || verdict == ETCH_LAB_FAILED_OTHERWISE) && !etch_lab_work_is_over(w)) {
        o->whole = true;
        verdict = turn_once(w, o);
        etch_lab_work_report(w, o, NULL, verdict);
    }
    if (verdict != ETCH_LAB_PASSED) {
        o->whole = false;
        return verdict == ETCH_LAB_BROKEN ? -1 : 0;
    }
    if (etch_lab_count_turned(w, o, ETCH_LAB_TRIES, &o->turned) < 0)
        return -1;
    return o->turned.of >= ETCH_LAB_TRIES / 2 && !o->turned.failed && !o->turned.otherwise;
}

/* ---- All of them ---- */

/* The orders that are tried, and the runs that passed because one of them was turned round. */
struct turning {
    struct etch_lab_order tried[ETCH_ORDERS_MAX];
    bool necessary[ETCH_ORDERS_MAX];
    uint32_t n;
    struct etch_lab_events cured[ETCH_LAB_ORDERS];
};

static bool is_cut(const struct etch_lab_work *w)
{
    const struct etch_lab_budget *b = &w->budget;

    return etch_lab_work_is_over(w) || (b->runs && w->cause->runs >= b->runs * TURNING / 100);
}

/* Turns orders round from `first` on. */
static int turn_from(struct etch_lab_work *w, struct turning *t, uint32_t first)
{
    struct etch_lab_cause *c = w->cause;
    int status = 0;

    for (uint32_t i = first; i < t->n && status >= 0 && c->orders.n < ETCH_LAB_ORDERS && !c->cut; i++) {
        c->n_tried++;
        status = turn_round(w, &t->tried[i]);
        c->cut = is_cut(w);
        if (status <= 0)
            continue;
        t->necessary[i] = true;
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

/* Behind the necessary orders come those that may be needed to make the failure sure. */
static void add_others(struct etch_lab_work *w, struct turning *t)
{
    struct etch_lab_orders *orders = &w->cause->orders;

    orders->all = orders->n;
    t->n = etch_orders_add_again(t->tried, t->n, etch_lab_work_events(w));
    for (uint32_t i = 0; i < t->n && orders->all < ETCH_ORDERS_MAX; i++)
        if (!t->necessary[i])
            orders->v[orders->all++] = t->tried[i];
}

/* Notes what turning each order round does to the others. */
static void note_evidence(struct etch_lab_work *w, const struct turning *t)
{
    struct etch_lab_orders *orders = &w->cause->orders;

    for (uint32_t i = 0; i < orders->n; i++) {
        orders->turned[i] = etch_orders_held(orders, t->cured[i]) & ~(UINT64_C(1) << i);
        log_order(i, &orders->v[i]);
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "  hold then: %llx", (unsigned long long)orders->turned[i]);
    }
    if (w->n_nearest)
        etch_orders_add_passed(orders, (struct etch_lab_events){w->nearest, w->n_nearest});
}

/* The last order before the failure comes first. Then come those that the failing run did not reach: the runs that have
 * passed are the nearest to the failing run, and show them. */
int etch_lab_turn_all(struct etch_lab_work *w)
{
    struct turning *t = calloc(1, sizeof(*t));
    struct etch_lab_orders *orders = &w->cause->orders;
    const struct etch_lab_events found = {w->nearest, w->n_nearest}, nearest = w->n_nearest ? found : w->passing;
    int status;

    if (!t)
        return etch_error_no_memory(w->err);
    t->n = etch_orders_list(t->tried, etch_lab_work_events(w), nearest);
    status = turn_from(w, t, 0);
    for (uint32_t i = 0, n; i < orders->n && status == 0; i++) {
        n = t->n;
        t->n = etch_orders_add_absent(t->tried, t->n, etch_lab_work_events(w), t->cured[i]);
        status = turn_from(w, t, n);
    }
    add_others(w, t);
    note_evidence(w, t);
    for (uint32_t i = 0; i < orders->n; i++)
        free((void *)(uintptr_t)t->cured[i].v);
    free(t);
    return status;
}
