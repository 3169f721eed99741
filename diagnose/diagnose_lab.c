/* SPDX-License-Identifier: MIT */
/* The lab's part in a diagnosis: looks for a schedule that fails as the native runs did, proves the cause by
 * experiment, and records runs for the sketch. */
#include "base/function_name.h"
#include "base/log.h"
#include "base/path.h"
#include "base/time.h"
#include "collector/lab_record.h"
#include "diagnose/diagnose_model.h"
#include "diagnose/lab_places.h"
#include "diagnose/lab_runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEDULES 200u    /* in which the failure is looked for */
#define SEARCH_SECONDS 20 /* the same, at most */
#define EXPERIMENTS 300u  /* runs */
#define PROOF_SECONDS 60  /* the same, at most */
#define RUN_SECONDS 10    /* of one run in the lab, at most */
#define POINTS 5000000u   /* of one run in the lab, at most */

/* ---- Which failure ---- */

/* The failing place of a bucket: "consumer bug.c:18" of "SIGSEGV, consumer bug.c:18 < main". */
static size_t place_of(const char *bucket, const char **place)
{
    const char *comma = strstr(bucket, ", ");

    *place = comma ? comma + 2 : "";
    return comma ? strcspn(*place, "<,") : 0;
}

static bool is_same_place(const char *one, const char *other)
{
    const char *a, *b;
    size_t n = place_of(one, &a), m = place_of(other, &b);

    while (n && a[n - 1] == ' ')
        n--;
    while (m && b[m - 1] == ' ')
        m--;
    return n == m && strncmp(a, b, n) == 0;
}

/* Two hangs are the same hang: the lab also sees threads that a native recording has no part of. Misuse of the heap is
 * the same failure as a crash at that place. */
static bool is_same_failure(const char *native, const char *lab)
{
    bool hang = strncmp(native, "hang", 4) == 0;

    return hang == (strncmp(lab, "hang", 4) == 0) && (hang || is_same_place(native, lab));
}

static bool is_wanted(const struct etch_diagnosis *d, const char *bucket)
{
    if (d->o->bug)
        return strstr(bucket, d->o->bug) != NULL;
    for (size_t i = 0; i < d->runs.bundles.n; i++)
        if (d->runs.bundles.v[i].failing && !d->runs.bundles.v[i].unplaced)
            return is_same_failure(d->runs.bundles.v[i].bucket, bucket);
    return true;
}

static void path_in(const struct etch_diagnosis *d, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%.4000s/lab/%s", d->folder, name);
}

/* Records a run once more to learn its failure's name. Empty: it is not known. */
static void name_failure(struct etch_diagnosis *d, const struct etch_lab_result *r, char *bucket, size_t size)
{
    struct etch_lab_request request = d->lab.explore.request;
    struct etch_run_set set = {.program = d->program, .lenient = true};
    struct etch_lab_result again;
    struct etch_error ignored; /* the failure has no name then */
    char path[4200];

    path_in(d, "name.etch", path, sizeof(path));
    bucket[0] = '\0';
    request.spec = r->shared->spec;
    request.sites = r->shared->sites;
    request.repeat = r->shared->segments;
    request.n_repeat = r->shared->n_segments;
    if (etch_lab_record(&again, &request, r->end == ETCH_LAB_HUNG, path, &ignored) < 0)
        return;
    if (etch_run_set_add(&set, path, r->end == ETCH_LAB_EXITED ? ETCH_VERDICT_FAIL : ETCH_VERDICT_AS_RECORDED, true,
                         &ignored) == 0 &&
        set.bundles.n && set.bundles.v[0].bucket)
        snprintf(bucket, size, "%s", set.bundles.v[0].bucket);
    etch_lab_result_release(&again);
    etch_run_set_release(&set);
    unlink(path);
}

/* Failures that end in the same way at the same instruction have the same name. */
static bool accept(void *context, const struct etch_lab_result *r)
{
    struct etch_diagnosis *d = context;
    struct etch_lab_phase *lab = &d->lab;
    struct etch_lab_known known = {r->end, r->end == ETCH_LAB_HUNG ? 0 : r->number, etch_lab_failing_site(r), false};
    char bucket[4096];

    for (uint32_t i = 0; i < lab->n_known; i++)
        if (lab->known[i].end == known.end && lab->known[i].number == known.number && lab->known[i].site == known.site)
            return lab->known[i].wanted;
    if (lab->n_known == ETCH_LAB_KNOWN)
        return false;
    name_failure(d, r, bucket, sizeof(bucket));
    known.wanted = lab->any || (bucket[0] && is_wanted(d, bucket));
    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "lab: fails as '%s', %s", bucket[0] ? bucket : "not known",
             known.wanted ? "the failure in question" : "another failure");
    lab->known[lab->n_known++] = known;
    return known.wanted;
}

/* ---- The search ---- */

static bool is_over(void *context)
{
    const struct etch_diagnosis *d = context;
    const struct etch_diagnose_observer *o = &d->observer;

    return (o->is_interrupted && o->is_interrupted(o->context)) ||
           (d->o->time > 0 && etch_time_seconds() - d->began > d->o->time);
}

static bool observe(void *context, uint64_t done, const struct etch_lab_result *r)
{
    struct etch_diagnosis *d = context;
    struct etch_diagnose_state state;

    (void)r;
    d->lab.schedules = done;
    state = etch_diagnosis_state(d);
    if (d->observer.progress && done % 10 == 0)
        d->observer.progress(d->observer.context, &state);
    return !is_over(d);
}

static bool check_fails(void *context, const char *output, int status)
{
    const struct etch_diagnosis *d = context;

    return etch_runner_check(d->o->fails_if, output, status);
}

/* Half of the time that is left, so that the failure can be examined. */
static double search_seconds(const struct etch_diagnosis *d)
{
    double half = d->o->time > 0 ? (d->began + d->o->time - etch_time_seconds()) / 2 : SEARCH_SECONDS;

    return half < 1 ? 1 : half < SEARCH_SECONDS ? half : SEARCH_SECONDS;
}

static int search(struct etch_diagnosis *d, struct etch_error *err)
{
    struct etch_lab_phase *lab = &d->lab;

    lab->explore = (struct etch_lab_explore){.request = {.program = lab->twin.path,
                                                         .argv = d->o->argv,
                                                         .input = d->o->input,
                                                         .silent = true,
                                                         .timeout = RUN_SECONDS,
                                                         .max_points = POINTS},
                                             .schedules = SCHEDULES,
                                             .seconds = search_seconds(d),
                                             .observe = observe,
                                             .accept = accept,
                                             .context = d};
    if (d->o->fails_if) {
        path_in(d, "output", lab->output, sizeof(lab->output));
        lab->explore.request.output = lab->output;
        lab->explore.request.fails = check_fails;
        lab->explore.request.fails_context = d;
    }
    if (etch_lab_explore(&lab->found, &lab->explore, err) < 0)
        return -1;
    if (lab->found.first || !lab->found.failing || d->o->bug || is_over(d))
        return 0;
    /* It fails in the lab, and never where it failed natively: an earlier symptom of the same bug, most often. */
    etch_lab_found_release(&lab->found);
    lab->any = true;
    lab->n_known = 0;
    return etch_lab_explore(&lab->found, &lab->explore, err);
}

/* ---- Experiments, and runs for the sketch ---- */

static double remaining_until(const struct etch_diagnosis *d)
{
    double until = etch_time_seconds() + PROOF_SECONDS;

    return d->o->time > 0 && d->began + d->o->time < until ? d->began + d->o->time : until;
}

static int add_runs(struct etch_diagnosis *d, const char *kind, uint32_t n, enum etch_verdict verdict,
                    struct etch_error *err)
{
    char name[64], path[4200];

    for (uint32_t i = 1; i <= n; i++) {
        snprintf(name, sizeof(name), "%s-%u.etch", kind, i);
        path_in(d, name, path, sizeof(path));
        if (etch_run_set_add(&d->lab.runs, path, verdict, true, err) < 0)
            return -1;
    }
    return 0;
}

static int record_runs(struct etch_diagnosis *d, const struct etch_lab_budget *budget, struct etch_error *err)
{
    struct etch_lab_phase *lab = &d->lab;
    bool hangs = lab->found.schedule.end == ETCH_LAB_HUNG;
    struct etch_lab_runs runs;
    char folder[4200];

    path_in(d, "", folder, sizeof(folder));
    lab->runs.program = d->program;
    lab->runs.bug = d->o->bug;
    lab->runs.lenient = true;
    if (etch_lab_runs_record(&runs, &lab->found, lab->experiment.cause.orders.n ? &lab->experiment.cause : NULL,
                             lab->experiment.known.learnt ? lab->experiment.known.learnt : lab->found.learnt,
                             &lab->explore, budget, folder, err) < 0 ||
        add_runs(d, "failing", runs.failing, hangs ? ETCH_VERDICT_HANG : ETCH_VERDICT_FAIL, err) < 0 ||
        add_runs(d, "passing", runs.passing, ETCH_VERDICT_PASS, err) < 0)
        return -1;
    lab->usable = runs.failing > 0;
    return 0;
}

static int prove(struct etch_diagnosis *d, struct etch_error *err)
{
    struct etch_lab_phase *lab = &d->lab;
    const struct etch_lab_budget budget = {
        .runs = EXPERIMENTS, .until = remaining_until(d), .is_over = is_over, .context = d};

    const struct etch_lab_observer observer = {etch_lab_explain_trial, &lab->explain};

    if (!lab->found.schedule.points && d->failures)
        return 0; /* no other thread ran: the schedule decides nothing, and native runs show as much */
    lab->explain.cause = &lab->experiment.cause;
    lab->explain.twin = lab->twin.path;
    if (lab->found.schedule.points && etch_lab_experiment(&lab->experiment, &lab->found, &lab->explore, &budget,
                                                          d->o->explain ? &observer : NULL, err) < 0)
        return -1;
    if (d->o->explain)
        etch_lab_explain_end(&lab->explain);
    if (record_runs(d, &budget, err) < 0)
        return -1;
    lab->proven = etch_claim_is_proven(&lab->experiment.cause.claim);
    return 0;
}

/* ---- All of it ---- */

/* Returns why the lab cannot run this; NULL if it can. */
static const char *refusal(const struct etch_diagnosis *d)
{
    if (d->o->program)
        return "a script starts the program";
    return NULL;
}

static void note_unusable(struct etch_diagnosis *d, const char *why)
{
    snprintf(d->lab.why, sizeof(d->lab.why), "The lab was not used: %.400s.", why);
    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_INFO, "%s", d->lab.why);
}

bool etch_diagnosis_lab_is_due(const struct etch_diagnosis *d)
{
    if (d->failures && !d->stop.threaded)
        return false; /* no other thread ran: the schedule decides nothing */
    return !d->o->no_lab && !d->lab.tried &&
           (d->failures || d->unplaced || d->stop.runs - d->stored >= ETCH_LAB_PATIENCE);
}

int etch_diagnosis_use_lab(struct etch_diagnosis *d, struct etch_error *err)
{
    struct etch_lab_phase *lab = &d->lab;
    const char *why = refusal(d);
    struct etch_error trouble;
    char folder[4200];
    int status = 0;

    lab->tried = true;
    if (why) {
        note_unusable(d, why);
        return 0;
    }
    path_in(d, "", folder, sizeof(folder));
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return etch_error_set_errno(err, errno, "cannot make %s", folder);
    if (etch_lab_twin(&lab->twin, d->program, &trouble) < 0 || search(d, &trouble) < 0) {
        note_unusable(d, trouble.what);
        return 0;
    }
    if (lab->found.first && prove(d, &trouble) < 0) {
        note_unusable(d, trouble.what);
        lab->usable = lab->proven = false;
        status = 0;
    }
    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_INFO, "lab: %llu schedules, first failure in %llu, %llu experiments, %s",
             (unsigned long long)lab->found.schedules, (unsigned long long)lab->found.first,
             (unsigned long long)lab->experiment.cause.runs, lab->proven ? "proven" : "not proven");
    return status;
}

/* The claim in the words of the sketch. Returns false if there is none, or a place of it is not known. */
static bool take_claim(struct etch_diagnosis *d, struct etch_experiment *e)
{
    static const enum etch_predictor_kind kinds[] = {
        [ETCH_CLAIM_ORDER] = ETCH_PREDICTOR_ORDER,    [ETCH_CLAIM_ATOMICITY] = ETCH_PREDICTOR_ATOMICITY,
        [ETCH_CLAIM_TORN] = ETCH_PREDICTOR_ATOMICITY, [ETCH_CLAIM_RING] = ETCH_PREDICTOR_LOCK_ORDER,
        [ETCH_CLAIM_SET] = ETCH_PREDICTOR_ORDER,      [ETCH_CLAIM_WAIT] = ETCH_PREDICTOR_WAIT};
    const struct etch_lab_cause *cause = &d->lab.experiment.cause;
    const struct etch_claim *c = &cause->claim;

    if (!c->n)
        return false;
    *e = (struct etch_experiment){.sureness = d->lab.proven ? ETCH_PROVEN : ETCH_NECESSARY,
                                  .kind = kinds[c->kind],
                                  .n_places = c->n_moments,
                                  .turned_failed = c->turned.failed + c->turned.otherwise,
                                  .turned = c->turned.of,
                                  .alone_failed = c->alone.failed + c->alone.otherwise,
                                  .alone = c->alone.of};
    for (uint32_t i = 0; i < c->n_moments; i++)
        if (i < sizeof(e->pattern) - 1)
            e->pattern[i] = c->moments[i].write ? 'W' : 'R';
    return etch_lab_places(cause, d->lab.twin.path, &d->lab.runs.names, e->places) == 0;
}

/* "read_all bug.c:18". Empty: the place is not known. */
static void place_text(struct etch_diagnosis *d, const struct etch_lab_event *e, char *text, size_t size)
{
    struct etch_names *names = &d->lab.runs.names;
    uint32_t place = etch_lab_place(&d->lab.experiment.cause, d->lab.twin.path, e, &d->lab.runs.names);
    char brief[128];

    text[0] = '\0';
    if (place != ETCH_NOWHERE)
        snprintf(text, size, "%s %s:%u", etch_function_short(names->places.v[place].function, brief, sizeof(brief)),
                 etch_path_name(names->places.v[place].file), names->places.v[place].line);
}

static void note_orphan(struct etch_diagnosis *d)
{
    const struct etch_lab_orphan *o = &d->lab.experiment.cause.orphan;
    char waits[300], taken[300], text[800];

    if (!o->known)
        return;
    place_text(d, &o->wait, waits, sizeof(waits));
    place_text(d, &o->taken, taken, sizeof(taken));
    snprintf(text, sizeof(text), "T%u waits at %s for a lock that T%u took at %s. T%u has ended with the lock held.",
             o->wait.thread + 1, waits[0] ? waits : "an unknown place", o->taken.thread + 1,
             taken[0] ? taken : "an unknown place", o->taken.thread + 1);
    etch_run_set_note(&d->lab.runs, text);
}

/* What the counts of the claim do not say. */
static void note_claim(struct etch_diagnosis *d)
{
    const struct etch_lab_cause *cause = &d->lab.experiment.cause;
    const struct etch_claim *c = &cause->claim;
    char before[300], after[300], text[800];

    if (c->alone.otherwise) {
        snprintf(text, sizeof(text),
                 "%u of the %u runs with the orders enforced fail at another place, or in another way, than the run "
                 "shown.%s",
                 c->alone.otherwise, c->alone.of,
                 2 * c->alone.failed < c->alone.of ? " So the cause is not called proven." : "");
        etch_run_set_note(&d->lab.runs, text);
    }
    for (uint32_t i = 0; i < c->n && (c->n > 2 || c->kind == ETCH_CLAIM_SET); i++) {
        const struct etch_lab_order *o = &cause->orders.v[c->orders[i]];

        place_text(d, &o->before, before, sizeof(before));
        place_text(d, &o->after, after, sizeof(after));
        snprintf(text, sizeof(text), "Enforced order %u of %u: T%u %s before T%u %s.", i + 1, c->n,
                 o->before.thread + 1, before, o->after.thread + 1, after);
        etch_run_set_note(&d->lab.runs, text);
    }
}

Etch__Sketch *etch_diagnosis_lab_sketch(struct etch_diagnosis *d, bool all, struct etch_error *err)
{
    struct etch_lab_phase *lab = &d->lab;
    struct etch_experiment experiment;
    char text[256];

    snprintf(text, sizeof(text), "The runs shown are of the lab. %u of %u native runs failed.",
             d->failures + d->unplaced, d->stop.runs);
    etch_run_set_note(&lab->runs, text);
    if (lab->any)
        etch_run_set_note(&lab->runs, "In the lab the program fails at another place than in native runs. This may be "
                                      "an earlier symptom of the same bug, or another bug.");
    note_orphan(d);
    note_claim(d);
    if (etch_run_set_prepare(&lab->runs, err) < 0)
        return NULL;
    if (take_claim(d, &experiment))
        lab->runs.experiment = &experiment;
    Etch__Sketch *sketch = etch_run_set_compose(&lab->runs, 0, 0, all, err);

    lab->runs.experiment = NULL;
    return sketch;
}

bool etch_diagnosis_prefers_lab(const struct etch_diagnosis *d)
{
    return d->lab.usable && (d->lab.experiment.cause.claim.n || !d->failures);
}

void etch_lab_phase_release(struct etch_lab_phase *lab)
{
    etch_lab_experiment_release(&lab->experiment);
    etch_lab_found_release(&lab->found);
    etch_run_set_release(&lab->runs);
    etch_lab_explain_release(&lab->explain);
}
