/* SPDX-License-Identifier: MIT */
/* Enforces sets of orders until one of them is proven; see lab_work.h. A run that passes with a set enforced shows
 * which orders of the failing run did not hold in it: the next set has one of them. */
#include "diagnose/lab_work.h"

#include <stdlib.h>

#define RARELY 4u     /* one of so many runs in which a set can be enforced: as many runs as that takes */
#define FRESH 100000u /* the first seed of the second test */
#define STUCK 4u      /* runs in a row in which a set cannot be enforced: it never can */
#define CLAIMS 60u    /* sets that are enforced, at most */

/* Schedules of all kinds: an order that is enough for the failure is enough under each of them. */
static struct etch_lab_spec spec_of(uint32_t i)
{
    static const enum etch_lab_strategy_kind kinds[] = {ETCH_LAB_QUEUE, ETCH_LAB_RANDOM, ETCH_LAB_PCT, ETCH_LAB_POS,
                                                        ETCH_LAB_SURW};

    return (struct etch_lab_spec){
        .kind = kinds[i % (sizeof(kinds) / sizeof(kinds[0]))], .seed = 1000 + i, .depth = 1 + i % 3};
}

/* The run that passed may show accesses that the failing run did not reach: they are orders to enforce, too. */
static void learn_from(struct etch_lab_work *w, const struct etch_claim *c, struct etch_lab_events run)
{
    struct etch_lab_orders *orders = &w->cause->orders;

    orders->all = etch_orders_add_absent(orders->v, orders->all, etch_lab_work_events(w), run);
    etch_orders_add_enforced(orders, c, run);
}

/* `against`: an order to turn round at the same time; NULL: none. */
static enum etch_lab_verdict run_enforced(struct etch_lab_work *w, const struct etch_claim *c, uint32_t i,
                                          const struct etch_lab_order *against)
{
    const struct etch_lab_segment *repeat = w->request.repeat;
    struct etch_lab_orders *orders = &w->cause->orders;
    struct etch_lab_rule rules[ETCH_LAB_RULES + 1];
    struct etch_lab_result r;
    enum etch_lab_verdict verdict;

    for (uint32_t k = 0; k < c->n; k++)
        rules[k] = etch_order_kept(&orders->v[c->orders[k]]);
    if (against)
        rules[c->n] = etch_order_turned(against);
    w->request.rules = rules;
    w->request.n_rules = c->n + (against != NULL);
    w->request.repeat = NULL;
    w->request.spec = spec_of(i);
    verdict = etch_lab_experiment_once(w, &r);
    w->request.rules = NULL;
    w->request.n_rules = 0;
    w->request.repeat = repeat;
    if (verdict == ETCH_LAB_PASSED)
        learn_from(w, c, (struct etch_lab_events){r.shared->events, r.shared->n_events});
    if (verdict != ETCH_LAB_BROKEN)
        etch_lab_result_release(&r);
    return verdict;
}

static void add_counts(struct etch_lab_count *to, const struct etch_lab_count *c)
{
    to->of += c->of;
    to->failed += c->failed;
    to->otherwise += c->otherwise;
}

static bool is_in(const struct etch_claim *c, uint32_t order)
{
    for (uint32_t k = 0; k < c->n; k++)
        if (c->orders[k] == order)
            return true;
    return false;
}

/* Enforces the set, and turns each other necessary order round. A seed rarely finds the run that passes; the other
 * necessary orders lead to it. Returns 1 if a run passed: the set is not enough. */
static int challenge(struct etch_lab_work *w, struct etch_claim *c)
{
    const struct etch_lab_orders *orders = &w->cause->orders;

    for (uint32_t i = 0; i < orders->n && !etch_lab_work_is_over(w); i++) {
        enum etch_lab_verdict verdict = is_in(c, i) ? ETCH_LAB_NOT_KEPT : run_enforced(w, c, 0, &orders->v[i]);

        if (verdict == ETCH_LAB_BROKEN)
            return -1;
        if (verdict != ETCH_LAB_PASSED)
            continue;
        etch_lab_count_add(&c->alone, verdict);
        etch_lab_work_report(w, NULL, c, verdict);
        return 1;
    }
    return 0;
}

/* Moves the places where threads are held back by one synchronisation. Returns false if there is none. */
static bool hold_earlier(struct etch_lab_work *w, const struct etch_claim *c, uint32_t back)
{
    bool any = false;

    for (uint32_t k = 0; k < c->n; k++) {
        struct etch_lab_order *o = &w->cause->orders.v[c->orders[k]];
        struct etch_lab_events of = o->absent ? w->passing : etch_lab_work_events(w);

        any |= etch_moment_back(of, &o->after, back, &o->hold_after);
    }
    return any;
}

static void hold_listed(struct etch_lab_work *w, const struct etch_claim *c, const struct etch_lab_moment *listed)
{
    for (uint32_t k = 0; k < c->n; k++)
        w->cause->orders.v[c->orders[k]].hold_after = listed[k];
}

static bool goes_on(const struct etch_claim *c, uint32_t tried)
{
    return c->alone.of < ETCH_CLAIM_TRIES && (tried < ETCH_CLAIM_TRIES || tried <= RARELY * c->alone.of);
}

/* Enforces the set until it was so in ETCH_CLAIM_TRIES runs, or until a run passes. */
static int enforce(struct etch_lab_work *w, struct etch_claim *c)
{
    struct etch_lab_moment listed[ETCH_LAB_RULES];
    uint32_t stuck = 0, back = 0;
    enum etch_lab_verdict verdict = ETCH_LAB_PASSED;
    int challenged = challenge(w, c);

    if (challenged)
        return challenged < 0 ? -1 : 0;
    for (uint32_t k = 0; k < c->n; k++)
        listed[k] = w->cause->orders.v[c->orders[k]].hold_after;
    for (uint32_t i = 0; goes_on(c, i) && !etch_lab_work_is_over(w); i++) {
        verdict = run_enforced(w, c, i, NULL);
        if (verdict == ETCH_LAB_BROKEN)
            return -1;
        etch_lab_count_add(&c->alone, verdict);
        if (verdict == ETCH_LAB_PASSED)
            break;
        stuck = verdict == ETCH_LAB_NOT_KEPT && !c->alone.of ? stuck + 1 : 0;
        if (stuck >= STUCK) {
            if (++back > ETCH_ORDER_BACK || !hold_earlier(w, c, back))
                break;
            stuck = 0;
        }
    }
    if (!c->alone.of)
        hold_listed(w, c, listed);
    etch_lab_work_report(w, NULL, c, verdict);
    return 0;
}

/* Turns each necessary order of the claim round, as often as the word proven asks for. */
static int confirm_turned(struct etch_lab_work *w, struct etch_claim *c)
{
    struct etch_lab_orders *orders = &w->cause->orders;
    uint32_t necessary = 0, each;

    c->turned = (struct etch_lab_count){0};
    for (uint32_t k = 0; k < c->n; k++)
        necessary += c->orders[k] < orders->n;
    each = necessary ? (ETCH_CLAIM_TRIES + necessary - 1) / necessary : 0;
    for (uint32_t k = 0; k < c->n; k++) {
        struct etch_lab_order *o = &orders->v[c->orders[k]];

        if (c->orders[k] >= orders->n)
            continue;
        if (etch_lab_count_turned(w, o, each > ETCH_LAB_TRIES ? each : ETCH_LAB_TRIES, &o->turned) < 0)
            return -1;
        c->turned.of += o->turned.of;
        c->turned.failed += o->turned.failed;
        c->turned.otherwise += o->turned.otherwise;
    }
    return 0;
}

/* Many sets are tried, and one of them may fail in all of its runs by chance. So the set that would be proven is put to
 * the test once more, with seeds of its own. A run that shows the contrary is added to the counts. */
static int test_again(struct etch_lab_work *w, struct etch_claim *c)
{
    struct etch_lab_orders *orders = &w->cause->orders;
    struct etch_lab_count alone = {0}, turned = {0};

    for (uint32_t i = 0; alone.of < ETCH_CLAIM_TRIES && i < RARELY * ETCH_CLAIM_TRIES && !etch_lab_work_is_late(w);
         i++) {
        enum etch_lab_verdict verdict = run_enforced(w, c, FRESH + i, NULL);

        if (verdict == ETCH_LAB_BROKEN)
            return -1;
        etch_lab_count_add(&alone, verdict);
        if (verdict == ETCH_LAB_PASSED)
            break;
    }
    for (uint32_t i = 0, k = 0;
         i < ETCH_CLAIM_TRIES && !turned.failed && !turned.otherwise && !etch_lab_work_is_late(w); i++, k++) {
        while (c->orders[k % c->n] >= orders->n)
            k++;
        if (etch_lab_turn_again(w, &orders->v[c->orders[k % c->n]], FRESH + i, &turned) < 0)
            return -1;
    }
    if (alone.failed + alone.otherwise < alone.of)
        add_counts(&c->alone, &alone);
    if (turned.failed || turned.otherwise)
        add_counts(&c->turned, &turned);
    c->unsure = etch_lab_work_is_late(w);
    return 0;
}

/* The runs with an order turned round that there are already. */
static void sum_turned(const struct etch_lab_orders *orders, struct etch_claim *c)
{
    for (uint32_t k = 0; k < c->n && !c->turned.of; k++)
        if (c->orders[k] < orders->n)
            c->turned = orders->v[c->orders[k]].turned;
}

static bool is_enough(const struct etch_claim *c)
{
    return c->alone.of >= ETCH_CLAIM_TRIES && c->alone.failed + c->alone.otherwise == c->alone.of;
}

/* The better of two claims that are not proven. */
static void take_better(struct etch_claim *answer, const struct etch_claim *c)
{
    if (etch_claim_is_proven(c) || (c->kind != ETCH_CLAIM_SET && 2 * c->alone.failed > c->alone.of && c->alone.of > 4 &&
                                    etch_claim_bound(c) > etch_claim_bound(answer)))
        *answer = *c;
}

int etch_lab_choose_claim(struct etch_lab_work *w)
{
    struct etch_lab_orders *orders = &w->cause->orders;
    struct etch_claim *answer = &w->cause->claim, next;
    int status = 0;

    if (orders->n)
        *answer = etch_claim_of_source(orders);
    for (uint32_t i = 0; i < CLAIMS && status == 0 && !etch_claim_is_proven(answer) && !etch_lab_work_is_over(w) &&
                         etch_claims_list(orders, &next, 1);
         i++) {
        status = enforce(w, &next);
        if (status == 0 && is_enough(&next))
            status = confirm_turned(w, &next);
        if (status == 0 && etch_claim_is_proven(&next))
            status = test_again(w, &next);
        sum_turned(orders, &next);
        take_better(answer, &next);
        etch_orders_refuse(orders, &next);
    }
    if (status == 0 && answer->n && !answer->alone.of)
        status = enforce(w, answer);
    if (status == 0 && answer->n && answer->turned.of < ETCH_CLAIM_TRIES)
        status = confirm_turned(w, answer);
    return status;
}
