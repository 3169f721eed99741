/* SPDX-License-Identifier: MIT */
/* See confirm.h. */
#include "diagnose/confirm.h"

#include "collector/hold.h"

#include <stdlib.h>
#include <string.h>

/* ---- In the lab ---- */

struct counting {
    struct etch_confirm_count *count;
    const struct etch_confirm *how;
    uint32_t n_rules;
    const struct etch_lab_order *turned; /* the order that is turned round; NULL: none */
};

/* A run that fails because the same two statements come in that order elsewhere is no run without the order. */
static bool recurs(const struct counting *c, const struct etch_lab_result *r)
{
    const struct etch_lab_events run = {r->shared->events, r->shared->n_events};

    return c->turned && etch_order_recurs(c->turned, run);
}

static bool observe(void *context, uint64_t done, const struct etch_lab_result *r)
{
    struct counting *c = context;
    bool failed = !(r->end == ETCH_LAB_EXITED && r->number == 0);
    bool kept = r->shared->kept >= c->n_rules;

    (void)done;
    if (r->end == ETCH_LAB_ENDLESS)
        c->count->unended++;
    else if (r->end == ETCH_LAB_UNLIKE || r->end == ETCH_LAB_UNKEPT || (!kept && !failed) || (failed && recurs(c, r)))
        c->count->unkept++;
    else {
        c->count->of++;
        c->count->failed += failed;
    }
    return !(c->how->is_over && c->how->is_over(c->how->context));
}

/* Moments are counted in points: all runs have the points of the run that the orders are of. */
static int count_runs(struct counting *counting, const struct etch_lab_request *like, uint32_t runs,
                      struct etch_error *err)
{
    static const enum etch_lab_strategy_kind kinds[] = {ETCH_LAB_QUEUE, ETCH_LAB_RANDOM, ETCH_LAB_PCT, ETCH_LAB_POS,
                                                        ETCH_LAB_SURW};
    struct etch_lab_request request = *like;
    bool goes_on = true;

    for (uint32_t i = 0; i < runs && goes_on; i++) {
        struct etch_lab_result r;

        request.spec = (struct etch_lab_spec){
            .kind = kinds[i % (sizeof(kinds) / sizeof(kinds[0]))], .seed = counting->how->seed + i, .depth = 1 + i % 3};
        if (etch_lab_run(&r, &request, err) < 0)
            return -1;
        goes_on = observe(counting, i + 1, &r);
        etch_lab_result_release(&r);
    }
    return 0;
}

/* Runs with these orders, under all strategies. `sites`: the points of the run that the orders are of; NULL: the orders
 * are of lines. */
static int count_lab(struct etch_confirm_count *count, const struct etch_confirm *how, const uint64_t *sites,
                     const struct etch_lab_rule *rules, uint32_t n, const struct etch_lab_order *turned, uint32_t runs,
                     struct etch_error *err)
{
    struct counting counting = {count, how, n, turned};
    struct etch_lab_explore explore = {.request = how->request,
                                       .seed = how->seed,
                                       .schedules = runs,
                                       .all = true,
                                       .observe = observe,
                                       .context = &counting};
    struct etch_lab_found found;

    explore.request.sites = sites;
    explore.request.rules = rules;
    explore.request.n_rules = n;
    if (sites)
        return count_runs(&counting, &explore.request, runs, err);
    if (etch_lab_explore(&found, &explore, err) < 0)
        return -1;
    etch_lab_found_release(&found);
    return 0;
}

static uint32_t share(uint32_t runs, uint32_t n)
{
    return n ? (runs + n - 1) / n : 0;
}

int etch_confirm_claim(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                       const struct etch_lab_cause *cause, struct etch_error *err)
{
    const struct etch_claim *c = &cause->claim;
    struct etch_lab_rule rules[ETCH_LAB_RULES];
    uint32_t necessary = 0;

    memset(confirmed, 0, sizeof(*confirmed));
    for (uint32_t k = 0; k < c->n; k++)
        rules[k] = etch_order_kept(&cause->orders.v[c->orders[k]]);
    if (count_lab(&confirmed->enforced, how, cause->sites, rules, c->n, NULL, how->runs, err) < 0)
        return -1;
    for (uint32_t k = 0; k < c->n; k++)
        necessary += c->orders[k] < cause->orders.n;
    for (uint32_t k = 0; k < c->n; k++) {
        const struct etch_lab_order *o = &cause->orders.v[c->orders[k]];
        struct etch_lab_rule turned = etch_order_turned(o);

        if (c->orders[k] < cause->orders.n &&
            count_lab(&confirmed->forbidden, how, cause->sites, &turned, 1, o, share(how->runs, necessary), err) < 0)
            return -1;
    }
    return 0;
}

static struct etch_lab_rule opposite(const struct etch_lab_rule *rule)
{
    return (struct etch_lab_rule){.first = rule->then, .then = rule->first};
}

static int confirm_resolved(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                            const struct etch_lab_enforced *orders, struct etch_error *err)
{
    struct etch_confirm with = *how;

    with.request.lines = orders->lines;
    if (count_lab(&confirmed->enforced, &with, NULL, orders->rules, orders->n, NULL, how->runs, err) < 0)
        return -1;
    for (uint32_t k = 0; k < orders->n; k++) {
        struct etch_lab_rule turned = opposite(&orders->rules[k]);

        if (count_lab(&confirmed->forbidden, &with, NULL, &turned, 1, NULL, share(how->runs, orders->n), err) < 0)
            return -1;
    }
    return 0;
}

/* Finds the lines of the script in `file`, which is the program or its lab build. */
static int resolve(struct etch_lab_enforced *orders, const struct etch_lab_script *script, const char *file,
                   const char *program, struct etch_error *err)
{
    struct etch_lab_names *names = etch_lab_names_new(file, program, err);
    int status = names ? etch_lab_names_resolve(names, script, orders, err) : -1;

    etch_lab_names_free(names);
    return status;
}

int etch_confirm_script(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                        const struct etch_lab_script *script, struct etch_error *err)
{
    struct etch_lab_enforced orders = {0};
    int status = resolve(&orders, script, how->request.program, how->program, err);

    memset(confirmed, 0, sizeof(*confirmed));
    if (status == 0)
        status = confirm_resolved(confirmed, how, &orders, err);
    etch_lab_enforced_release(&orders);
    return status;
}

/* ---- Names for native runs ---- */

static bool name_event(struct etch_lab_names *names, const struct etch_lab_result *r, const struct etch_lab_event *e,
                       struct etch_lab_named *m)
{
    memset(m, 0, sizeof(*m));
    m->what = ETCH_LAB_AT_PLACE;
    m->visit = e->visit ? e->visit : 1;
    if (!etch_lab_name_thread(r->shared->thread, r->shared->threads, e->thread, &m->thread) ||
        !etch_lab_names_line(names, r->shared->base, e, m))
        return false;
    m->kind = ETCH_LAB_ANY; /* natively a statement is a whole */
    return true;
}

/* Breakpoints cannot part two accesses of one statement. */
static int refuse_parts(const struct etch_lab_script *s, const struct etch_lab_cause *cause, struct etch_error *err)
{
    for (uint32_t i = 0; i < cause->claim.n; i++)
        for (uint32_t k = 0; k < cause->claim.n; k++) {
            const struct etch_lab_named *a = &s->orders.v[i].first, *c = &s->orders.v[k].then;

            if (a->line != c->line || a->visit != c->visit || strcmp(a->file, c->file) != 0 ||
                memcmp(&a->thread, &c->thread, sizeof(a->thread)) != 0 ||
                cause->orders.v[cause->claim.orders[i]].before.site ==
                    cause->orders.v[cause->claim.orders[k]].after.site)
                continue;
            etch_error_set(err, "%s:%u: another thread must come in the middle of this statement", a->file, a->line);
            return etch_error_advise(err, "natively threads are held between statements only; leave --native out");
        }
    return 0;
}

/* The opposite of an order. Some hold the thread until the other one has ended. */
static struct etch_lab_constraint turned_of(const struct etch_lab_constraint *c, bool whole)
{
    struct etch_lab_constraint turned = {.first = c->then, .then = c->first};

    if (whole)
        turned.first = (struct etch_lab_named){.thread = c->then.thread, .what = ETCH_LAB_AT_END};
    return turned;
}

static int name_orders(struct etch_lab_script *script, struct etch_lab_script *turned,
                       const struct etch_lab_cause *cause, struct etch_lab_names *names,
                       const struct etch_lab_result *r, struct etch_error *err)
{
    for (uint32_t k = 0; k < cause->claim.n; k++) {
        const struct etch_lab_order *o = &cause->orders.v[cause->claim.orders[k]];
        struct etch_lab_constraint c, t;

        if (!name_event(names, r, &o->before, &c.first) || !name_event(names, r, &o->after, &c.then))
            return etch_error_set(err, "an order of the cause is not in the program's own source");
        t = turned_of(&c, o->whole);
        if (!etch_array_push(&script->orders, c) || !etch_array_push(&turned->orders, t))
            return etch_error_no_memory(err);
    }
    return refuse_parts(script, cause, err);
}

int etch_confirm_name(struct etch_lab_script *script, struct etch_lab_script *turned,
                      const struct etch_lab_cause *cause, const struct etch_lab_request *like, const char *program,
                      struct etch_error *err)
{
    struct etch_lab_names *names = etch_lab_names_new(like->program, program, err);
    struct etch_lab_request request = *like;
    struct etch_lab_result r;
    int status = -1;

    memset(script, 0, sizeof(*script));
    memset(turned, 0, sizeof(*turned));
    request.sites = cause->sites;
    request.spec = (struct etch_lab_spec){.kind = ETCH_LAB_QUEUE, .depth = 1};
    request.repeat = cause->schedule.segments.v;
    request.n_repeat = (uint32_t)cause->schedule.segments.n;
    request.loosely = true;
    if (names && etch_lab_run(&r, &request, err) == 0) {
        status = name_orders(script, turned, cause, names, &r, err);
        etch_lab_result_release(&r);
    }
    etch_lab_names_free(names);
    return status;
}

/* ---- Natively ---- */

static int count_native(struct etch_confirm_count *count, const struct etch_confirm *how,
                        const struct etch_hold_request *request, uint32_t runs, struct etch_error *err)
{
    for (uint32_t i = 0; i < runs && !(how->is_over && how->is_over(how->context)); i++) {
        struct etch_hold_result r;
        bool failed;

        if (etch_hold_run(&r, request, err) < 0)
            return -1;
        failed = r.end != ETCH_HOLD_EXITED || r.number != 0;
        if (r.end == ETCH_HOLD_ENDLESS)
            count->unended++;
        else if (r.end == ETCH_HOLD_UNKEPT || (r.kept < request->n_rules && !failed))
            count->unkept++;
        else {
            count->of++;
            count->failed += failed;
        }
    }
    return 0;
}

static struct etch_hold_request request_of(const struct etch_confirm *how, const struct etch_lab_enforced *orders)
{
    return (struct etch_hold_request){.program = how->program,
                                      .argv = how->request.argv,
                                      .input = how->request.input,
                                      .rules = orders->rules,
                                      .n_rules = orders->n,
                                      .lines = orders->lines,
                                      .patience = how->patience,
                                      .timeout = how->request.timeout};
}

/* Each of the opposite orders alone. */
static int count_turned(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                        const struct etch_lab_enforced *turned, struct etch_error *err)
{
    for (uint32_t k = 0; k < turned->n; k++) {
        struct etch_hold_request request = request_of(how, turned);

        request.rules = &turned->rules[k];
        request.n_rules = 1;
        if (count_native(&confirmed->forbidden, how, &request, share(how->runs, turned->n), err) < 0)
            return -1;
    }
    return 0;
}

static int turn_script(struct etch_lab_script *turned, const struct etch_lab_script *script, struct etch_error *err)
{
    for (size_t i = 0; i < script->orders.n; i++)
        if (!etch_array_push(&turned->orders, turned_of(&script->orders.v[i], false)))
            return etch_error_no_memory(err);
    return 0;
}

int etch_confirm_natively(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                          const struct etch_lab_script *script, const struct etch_lab_script *turned,
                          struct etch_error *err)
{
    struct etch_lab_enforced orders = {0}, opposite_orders = {0};
    struct etch_lab_script simply = {0};
    int status = turned ? 0 : turn_script(&simply, script, err);

    memset(confirmed, 0, sizeof(*confirmed));
    if (status == 0 && resolve(&orders, script, how->program, how->program, err) == 0 &&
        resolve(&opposite_orders, turned ? turned : &simply, how->program, how->program, err) == 0) {
        struct etch_hold_request request = request_of(how, &orders);

        status = count_native(&confirmed->enforced, how, &request, how->runs, err);
        if (status == 0)
            status = count_turned(confirmed, how, &opposite_orders, err);
    } else
        status = -1;
    etch_lab_enforced_release(&orders);
    etch_lab_enforced_release(&opposite_orders);
    etch_array_free(&simply.orders);
    return status;
}

bool etch_confirmed_holds(const struct etch_confirmed *c, uint32_t runs)
{
    return 2 * c->enforced.of >= runs && 2 * c->forbidden.of >= runs &&
           20 * c->enforced.failed >= 19 * c->enforced.of && 100 * c->forbidden.failed <= c->forbidden.of;
}
