/* SPDX-License-Identifier: MIT */
/* See lab_work.h. */
#include "diagnose/lab_work.h"

#include "base/log.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

static enum etch_lab_verdict judge(const struct etch_lab_work *w, const struct etch_lab_result *r)
{
    if (r->end == ETCH_LAB_EXITED && r->number == 0)
        return ETCH_LAB_PASSED;
    if (r->end == ETCH_LAB_UNKEPT || r->end == ETCH_LAB_UNLIKE || r->end == ETCH_LAB_ENDLESS)
        return ETCH_LAB_NOT_KEPT;
    if (r->end != w->failing->end || (r->end != ETCH_LAB_HUNG && r->number != w->failing->number))
        return ETCH_LAB_FAILED_OTHERWISE;
    return w->site && etch_lab_failing_site(r) != w->site ? ETCH_LAB_FAILED_OTHERWISE : ETCH_LAB_FAILED;
}

bool etch_lab_work_is_late(const struct etch_lab_work *w)
{
    const struct etch_lab_budget *b = &w->budget;

    return (b->until > 0 && etch_time_seconds() > b->until) || (b->is_over && b->is_over(b->context));
}

bool etch_lab_work_is_over(const struct etch_lab_work *w)
{
    return (w->budget.runs && w->cause->runs >= w->budget.runs) || etch_lab_work_is_late(w);
}

enum etch_lab_verdict etch_lab_experiment_once(struct etch_lab_work *w, struct etch_lab_result *r)
{
    w->cause->runs++;
    return etch_lab_run(r, &w->request, w->err) < 0 ? ETCH_LAB_BROKEN : judge(w, r);
}

struct etch_lab_events etch_lab_work_events(const struct etch_lab_work *w)
{
    return (struct etch_lab_events){w->events, w->n_events};
}

bool etch_lab_work_keep(struct etch_lab_event **events, uint32_t *n_events, const struct etch_lab_result *r)
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

void etch_lab_count_add(struct etch_lab_count *c, enum etch_lab_verdict verdict)
{
    if (verdict == ETCH_LAB_NOT_KEPT || verdict == ETCH_LAB_BROKEN)
        return;
    c->of++;
    c->failed += verdict == ETCH_LAB_FAILED;
    c->otherwise += verdict == ETCH_LAB_FAILED_OTHERWISE;
}

static const char *verdict_name(enum etch_lab_verdict verdict)
{
    static const char *const names[] = {"passes", "fails", "fails otherwise", "cannot be enforced"};

    return verdict >= 0 ? names[verdict] : "";
}

void etch_lab_work_report(const struct etch_lab_work *w, const struct etch_lab_order *order,
                          const struct etch_claim *claim, enum etch_lab_verdict verdict)
{
    const struct etch_lab_trial trial = {order, claim, verdict_name(verdict)};

    if (order)
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "turned round: T%u %llx #%u before T%u %llx #%u%s: %s",
                 order->before.thread + 1, (unsigned long long)order->before.site, order->before.visit,
                 order->after.thread + 1, (unsigned long long)order->after.site, order->after.visit,
                 order->whole ? " whole" : "", trial.outcome);
    else
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "enforced: kind %d, orders %u %u (%u): %u+%u of %u fail",
                 claim->kind, claim->orders[0], claim->orders[1], claim->n, claim->alone.failed, claim->alone.otherwise,
                 claim->alone.of);
    if (w->observer.tried && verdict != ETCH_LAB_BROKEN)
        w->observer.tried(w->observer.context, &trial);
}
