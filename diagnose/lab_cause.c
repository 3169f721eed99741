/* SPDX-License-Identifier: MIT */
/* See lab_cause.h. */
#include "diagnose/lab_cause.h"
#include "base/time.h"
#include "diagnose/lab_work.h"

#include <stdlib.h>
#include <string.h>

#define MORE_SCHEDULES 30u /* tried for a failing run that shows more than the first */
#define LEARNING_ROUNDS 3u /* with the points that the round before has learnt */

/* Where the threads of a hang wait for others to wake them. */
static void note_waits(struct etch_lab_orders *o, const struct etch_lab_result *r)
{
    for (uint32_t i = 0; r->end == ETCH_LAB_HUNG && i < r->shared->threads && o->n_waits < ETCH_LAB_ORDERS; i++) {
        const struct etch_lab_thread *t = &r->shared->thread[i];

        if (t->wait == ETCH_LAB_CONDITION || t->wait == ETCH_LAB_SEMAPHORE || t->wait == ETCH_LAB_FUTEX)
            o->waits[o->n_waits++] = (struct etch_lab_moment){.site = t->site, .thread = i};
    }
}

/* A lock whose owner has ended, and where the owner took it. */
static void note_orphan(struct etch_lab_orphan *o, const struct etch_lab_result *r)
{
    const struct etch_lab_shared *s = r->shared;

    for (uint32_t i = 0; r->end == ETCH_LAB_HUNG && i < s->threads && !o->known; i++) {
        const struct etch_lab_thread *t = &s->thread[i];

        if (t->wait != ETCH_LAB_MUTEX || t->holder >= s->threads || !s->thread[t->holder].dead)
            continue;
        o->wait = (struct etch_lab_event){.site = t->site, .thread = i};
        for (uint32_t k = 0; k < ETCH_LAB_CALLERS && k < t->depth && t->depth <= ETCH_LAB_FRAMES; k++)
            o->wait.callers[k] = t->frames[t->depth - 1 - k];
        for (uint32_t k = 0; k < s->n_events; k++)
            if (s->events[k].thread == t->holder && s->events[k].sync && !s->events[k].release &&
                s->events[k].object == t->object) {
                o->taken = s->events[k];
                o->known = true;
            }
    }
}

static int find(struct etch_lab_work *w, etch_lab_segments *shortest)
{
    int status = etch_lab_shorten(w, shortest);

    if (status <= 0)
        return status;
    if (etch_lab_find_nearest(w, shortest) < 0)
        return -1;
    if (w->cause->more_sites && w->learns)
        return 0; /* the caller begins again, with these points */
    w->request.repeat = shortest->v;
    w->request.n_repeat = (uint32_t)shortest->n;
    return etch_lab_turn_all(w) < 0 ? -1 : etch_lab_choose_claim(w);
}

static int find_cause(struct etch_lab_cause *cause, const struct etch_lab_schedule *failing, bool learns,
                      const struct etch_lab_request *like, struct etch_lab_events passing,
                      const struct etch_lab_budget *budget, const struct etch_lab_observer *observer,
                      struct etch_error *err)
{
    struct etch_lab_work w = {
        .cause = cause, .failing = failing, .request = *like, .passing = passing, .learns = learns, .budget = *budget};
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
    note_orphan(&cause->orphan, &first);
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
    free(w.nearest);
    free(w.cured);
    return status < 0 ? -1 : 0;
}

int etch_lab_find_cause(struct etch_lab_cause *cause, const struct etch_lab_schedule *failing,
                        const struct etch_lab_request *like, struct etch_lab_events passing,
                        const struct etch_lab_budget *budget, const struct etch_lab_observer *observer,
                        struct etch_error *err)
{
    return find_cause(cause, failing, false, like, passing, budget, observer, err);
}

void etch_lab_cause_release(struct etch_lab_cause *cause)
{
    free(cause->more_sites);
    cause->more_sites = NULL;
    etch_lab_schedule_release(&cause->schedule);
}

/* Tries further schedules. Their failure is taken if it is the one that the search found. */
static int explore_more(struct etch_lab_experiment *e, const struct etch_lab_found *f, const uint64_t *sites,
                        const struct etch_lab_explore *explore, const struct etch_lab_budget *budget,
                        const struct etch_lab_found **from, struct etch_error *err)
{
    struct etch_lab_explore again = *explore;
    double left = budget->until > 0 ? (budget->until - etch_time_seconds()) / 4 : 0; /* the rest is for experiments */
    const struct etch_lab_schedule *s = &e->known.schedule;

    again.request.sites = sites;
    again.schedules = MORE_SCHEDULES;
    if (budget->until > 0 && (again.seconds <= 0 || left < again.seconds))
        again.seconds = left > 1 ? left : 1;
    again.all = again.latest = true;
    again.given = again.whole = true;
    again.request.spec = (struct etch_lab_spec){.kind = ETCH_LAB_SURW, .depth = 3};
    if (etch_lab_explore(&e->known, &again, err) < 0)
        return -1;
    *from = e->known.first && s->end == f->schedule.end && s->number == f->schedule.number ? &e->known : f;
    return 0;
}

int etch_lab_experiment(struct etch_lab_experiment *e, const struct etch_lab_found *f,
                        const struct etch_lab_explore *explore, const struct etch_lab_budget *budget,
                        const struct etch_lab_observer *observer, struct etch_error *err)
{
    struct etch_lab_found first;
    const struct etch_lab_found *from;
    uint64_t *sites = f->learnt;
    int status = 0;

    memset(e, 0, sizeof(*e));
    for (uint32_t round = 0; round < LEARNING_ROUNDS; round++) {
        bool learns = round + 1 < LEARNING_ROUNDS;

        first = e->known;
        memset(&e->known, 0, sizeof(e->known));
        status = explore_more(e, f, sites, explore, budget, &from, err);
        etch_lab_found_release(&first);
        etch_lab_cause_release(&e->cause);
        if (status == 0)
            status = find_cause(&e->cause, &from->schedule, learns, &explore->request,
                                (struct etch_lab_events){from->passing, from->n_passing}, budget, observer, err);
        if (sites != f->learnt)
            free(sites);
        if (status < 0 || !learns || !e->cause.more_sites)
            return status;
        sites = e->cause.more_sites;
        e->cause.more_sites = NULL;
    }
    return status;
}

void etch_lab_experiment_release(struct etch_lab_experiment *e)
{
    etch_lab_found_release(&e->known);
    etch_lab_cause_release(&e->cause);
}
