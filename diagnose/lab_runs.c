/* SPDX-License-Identifier: MIT */
/* See lab_runs.h. */
#include "diagnose/lab_runs.h"

#include "base/log.h"
#include "base/time.h"
#include "collector/lab_record.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEDULES 40u /* that are tried */
#define EACH 5u       /* failing and passing runs that are kept */

struct work {
    struct etch_lab_runs *runs;
    const struct etch_lab_found *found;
    const struct etch_lab_explore *explore;
    const struct etch_lab_budget *budget;
    const char *folder;
    uint64_t *sites; /* that are known so far */
    uint64_t expected[ETCH_LAB_THREADS];
    uint64_t hash; /* of the last schedule's points */
};

static bool is_late(const struct work *w)
{
    return w->budget && ((w->budget->until > 0 && etch_time_seconds() > w->budget->until) ||
                         (w->budget->is_over && w->budget->is_over(w->budget->context)));
}

static void name_of(const struct work *w, bool failing, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.3800s/%s-%u.etch", w->folder, failing ? "failing" : "passing",
             1 + (failing ? w->runs->failing : w->runs->passing));
}

static bool is_same_failure(const struct work *w, const struct etch_lab_result *r)
{
    const struct etch_lab_schedule *s = &w->found->schedule;

    return r->end == s->end && (r->end == ETCH_LAB_HUNG || r->number == s->number) &&
           (!w->explore->accept || w->explore->accept(w->explore->context, r));
}

/* Runs without a recorder are quick. They show which schedules are worth recording. Returns 1 to record it as failing,
 * 0 as passing, -1 not at all, or -2 with `err` set. */
static int try_schedule(struct work *w, const struct etch_lab_request *request, struct etch_error *err)
{
    struct etch_lab_result r;
    int wanted;

    if (etch_lab_run(&r, request, err) < 0)
        return -2;
    wanted = is_same_failure(w, &r) ? 1 : r.end == ETCH_LAB_EXITED && r.number == 0 ? 0 : -1;
    if (wanted == 0)
        for (uint32_t i = 0; i < ETCH_LAB_THREADS; i++)
            w->expected[i] = r.shared->thread[i].interesting;
    memcpy(w->sites, r.shared->learnt, ETCH_LAB_SITES * sizeof(*w->sites));
    w->hash = r.shared->hash;
    etch_lab_result_release(&r);
    return wanted;
}

/* Records one run. A run that ends otherwise under the recorder is not kept. Returns 0, or -1 with `err` set. */
static int record(struct work *w, const struct etch_lab_request *request, bool failing, struct etch_error *err)
{
    bool hangs = failing && w->found->schedule.end == ETCH_LAB_HUNG, same;
    struct etch_lab_result r;
    char path[PATH_MAX];

    name_of(w, failing, path);
    if (etch_lab_record(&r, request, hangs, path, err) < 0)
        return -1;
    same = failing ? is_same_failure(w, &r) : r.end == ETCH_LAB_EXITED && r.number == 0;
    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG,
             "lab: %s: %s after %llu points, hash %016llx; without a recorder %016llx", path,
             same ? "recorded" : "ended otherwise under the recorder, and is not kept",
             (unsigned long long)r.shared->points, (unsigned long long)r.shared->hash, (unsigned long long)w->hash);
    etch_lab_result_release(&r);
    if (!same)
        unlink(path);
    else if (failing)
        w->runs->failing++;
    else
        w->runs->passing++;
    return 0;
}

static struct etch_lab_spec spec_of(uint32_t i)
{
    return (struct etch_lab_spec){.kind = i == 0  ? ETCH_LAB_QUEUE
                                          : i % 2 ? ETCH_LAB_SURW
                                                  : ETCH_LAB_RANDOM,
                                  .seed = i,
                                  .depth = 3};
}

/* Schedules from seeds, as long as failing or passing runs are missing. */
static int record_seeds(struct work *w, struct etch_lab_request request, struct etch_error *err)
{
    struct etch_lab_runs *runs = w->runs;

    uint64_t *sites = malloc(ETCH_LAB_SITES * sizeof(*sites)); /* of both runs of a schedule */
    int status = sites ? 0 : etch_error_no_memory(err);

    request.sites = sites;
    request.expected = w->expected;
    for (uint32_t i = 0; status == 0 && i < SCHEDULES && (runs->failing < EACH || runs->passing < EACH) && !is_late(w);
         i++) {
        int wanted;

        memcpy(sites, w->sites, ETCH_LAB_SITES * sizeof(*sites));
        request.spec = spec_of(i);
        wanted = try_schedule(w, &request, err);
        if (wanted == -2)
            status = -1;
        else if (wanted >= 0 && (wanted ? runs->failing : runs->passing) < EACH)
            status = record(w, &request, wanted, err);
    }
    free(sites);
    return status;
}

/* The points of the first failure may be others than those that are known now. */
static int record_found(struct work *w, struct etch_lab_request request, struct etch_error *err)
{
    const struct etch_lab_schedule *s = &w->found->schedule;

    request.spec = s->spec;
    request.sites = s->sites;
    request.repeat = s->segments.v;
    request.n_repeat = (uint32_t)s->segments.n;
    return record(w, &request, true, err);
}

/* The failing schedule with one of its orders turned round: as near to the failing run as a passing run can be. */
static int record_turned(struct work *w, struct etch_lab_request request, const struct etch_lab_cause *cause,
                         struct etch_error *err)
{
    request.sites = cause->sites;
    request.repeat = cause->schedule.segments.v;
    request.n_repeat = (uint32_t)cause->schedule.segments.n;
    request.loosely = true;
    request.n_rules = 1;
    for (uint32_t i = 0; i < cause->orders.n && w->runs->passing < EACH; i++)
        for (uint32_t k = 0; k < ETCH_LAB_TRIES && w->runs->passing < EACH && !(w->runs->passing && is_late(w)); k++) {
            const struct etch_lab_rule turned = etch_order_turned(&cause->orders.v[i]);
            int wanted;

            request.rules = &turned;
            request.spec = (struct etch_lab_spec){.kind = k ? ETCH_LAB_RANDOM : ETCH_LAB_QUEUE, .seed = k, .depth = 1};
            wanted = try_schedule(w, &request, err);
            if (wanted == -2 || (wanted == 0 && record(w, &request, false, err) < 0))
                return -1;
        }
    return 0;
}

int etch_lab_runs_record(struct etch_lab_runs *runs, const struct etch_lab_found *found,
                         const struct etch_lab_cause *cause, const uint64_t *learnt,
                         const struct etch_lab_explore *explore, const struct etch_lab_budget *budget,
                         const char *folder, struct etch_error *err)
{
    struct work w = {.runs = runs, .found = found, .explore = explore, .budget = budget, .folder = folder};
    const struct etch_lab_request *like = &explore->request;
    int status;

    *runs = (struct etch_lab_runs){0};
    w.sites = calloc(ETCH_LAB_SITES, sizeof(*w.sites));
    if (!w.sites)
        return etch_error_no_memory(err);
    if (learnt)
        memcpy(w.sites, learnt, ETCH_LAB_SITES * sizeof(*w.sites));
    status = record_seeds(&w, *like, err);
    if (status == 0 && !runs->failing)
        status = record_found(&w, *like, err);
    if (status == 0 && runs->passing < EACH / 2 && cause && (!runs->passing || !is_late(&w)))
        status = record_turned(&w, *like, cause, err);
    free(w.sites);
    return status;
}
