/* SPDX-License-Identifier: MIT */
/* See lab_cause.h. */
#include "diagnose/lab_cause.h"
#include "diagnose/lab_work.h"

#include <stdlib.h>
#include <string.h>

#define MORE_SCHEDULES 30u /* tried for a failing run that shows more than the first */

/* Where the threads of a hang wait for others to wake them. */
static void note_waits(struct etch_lab_orders *o, const struct etch_lab_result *r)
{
    for (uint32_t i = 0; r->end == ETCH_LAB_HUNG && i < r->shared->threads && o->n_waits < ETCH_LAB_ORDERS; i++) {
        const struct etch_lab_thread *t = &r->shared->thread[i];

        if (t->wait == ETCH_LAB_CONDITION || t->wait == ETCH_LAB_SEMAPHORE || t->wait == ETCH_LAB_FUTEX)
            o->waits[o->n_waits++] = (struct etch_lab_moment){.site = t->site, .thread = i};
    }
}

static int find(struct etch_lab_work *w, etch_lab_segments *shortest)
{
    int status = etch_lab_shorten(w, shortest);

    if (status <= 0)
        return status;
    w->request.repeat = shortest->v;
    w->request.n_repeat = (uint32_t)shortest->n;
    return etch_lab_turn_all(w) < 0 ? -1 : etch_lab_choose_claim(w);
}

int etch_lab_find_cause(struct etch_lab_cause *cause, const struct etch_lab_schedule *failing,
                        const struct etch_lab_request *like, struct etch_lab_events passing,
                        const struct etch_lab_budget *budget, const struct etch_lab_observer *observer,
                        struct etch_error *err)
{
    struct etch_lab_work w = {
        .cause = cause, .failing = failing, .request = *like, .passing = passing, .budget = *budget};
    struct etch_lab_result first;
    etch_lab_segments shortest = {0};
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
