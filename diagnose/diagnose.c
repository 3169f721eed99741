/* SPDX-License-Identifier: MIT */
/* The loop of a diagnosis; see diagnose.h. */
#include "diagnose/diagnose.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"
#include "collector/watch.h"
#include "diagnose/diagnose_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIGMA 16u /* enough statements for most failures; with debug registers a round sees all its sets */
#define SLOWDOWN 12.0   /* of a program by watches, beside its runs without */
#define NAP 0.2         /* seconds between two calls of the observer */

/* ---- After each run ---- */

static uint32_t first_sigma(const struct etch_diagnosis *d)
{
    if (d->round.sigma)
        return d->round.sigma; /* goes on where the call before ended */
    return d->o->sigma ? d->o->sigma : FIRST_SIGMA;
}

/* Failures of the bug in question that are compared. */
static unsigned count_ours(const struct etch_diagnosis *d)
{
    unsigned n = 0;

    for (size_t i = 0; i < d->runs.bundles.n; i++)
        n += etch_diagnosis_is_ours(d, &d->runs.bundles.v[i]);
    return n;
}

/* Ranks anew and remembers whether the best is still the best. */
static int rank(struct etch_diagnosis *d, struct etch_error *err)
{
    struct etch_best best, *old = &d->stop.best;
    bool same;

    if (etch_run_set_prepare(&d->runs, err) < 0 || etch_run_set_rank(&d->runs, &best, err) < 0)
        return -1;
    d->stop.threaded = etch_run_set_is_threaded(&d->runs);
    d->stop.repeats = !d->inputs.n && etch_run_set_repeats(&d->runs, ETCH_STOP_NEVER_PASSES);
    best.is_said &= d->stop.native;
    same = best.text && old->text && strcmp(best.text, old->text) == 0;
    if (best.text && (!same || old->f < ETCH_STOP_STRONG))
        d->needed = count_ours(d);
    if (!best.text)
        best.text = old->text; /* the previous predictor stays, for messages */
    else
        free(old->text);
    *old = best;
    return 0;
}

/* Says why a round ends. */
static void log_next(const struct etch_diagnosis *d, enum etch_next next)
{
    static const char *const why[] = {
        [ETCH_NEXT_RUN] = "goes on: more runs may change the ranking",
        [ETCH_NEXT_REPLAN] = "ends: runs have shown where more of the watched objects are",
        [ETCH_NEXT_FEWER] = "ends: the watches keep the program from passing, half as many come next",
        [ETCH_NEXT_WIDEN] = "ends: no cause is strong enough, twice as many statements come next",
    };
    const char *text = next != ETCH_NEXT_END           ? why[next]
                       : etch_stop_is_enough(&d->stop) ? "ends: the best predictor is strong, and stays"
                                                       : "ends: the whole slice was watched, with runs enough";

    etch_log(ETCH_LOG_DIAGNOSE, next == ETCH_NEXT_END ? ETCH_LOG_INFO : ETCH_LOG_DEBUG,
             "round %u after %u runs, best F %.3f (%s): %s", d->round.number, d->stop.runs, d->stop.best.f,
             d->stop.best.text ? d->stop.best.text : "none", text);
}

static int take_next(struct etch_diagnosis *d, enum etch_next next, struct etch_error *err)
{
    log_next(d, next);
    switch (next) {
    case ETCH_NEXT_REPLAN:
        return etch_diagnosis_next_round(d, d->round.sigma, err);
    case ETCH_NEXT_FEWER:
        d->stop.slots /= 2;
        return etch_diagnosis_next_round(d, d->round.sigma, err);
    case ETCH_NEXT_WIDEN:
        return etch_diagnosis_next_round(d, d->round.sigma * 2, err);
    case ETCH_NEXT_END:
        d->done = true;
        return 0;
    default:
        return 0;
    }
}

/* `set`: the set of watches of a passing run; NULL: any other run, or a run of the store. */
static int consider(struct etch_diagnosis *d, const struct etch_set_seen *set, struct etch_error *err)
{
    if (!d->failures)
        return 0;
    if (!d->round.number) {
        if (etch_run_set_prepare(&d->runs, err) < 0 || etch_diagnosis_next_round(d, first_sigma(d), err) < 0)
            return -1;
        return rank(d, err);
    }
    if (set && !etch_stop_worth_ranking(&d->stop, set))
        return 0;
    if (rank(d, err) < 0)
        return -1;
    return take_next(d, etch_stop_decide(&d->stop, etch_stop_may_replan(&d->stop) && etch_diagnosis_has_found(d)), err);
}

/* ---- The loop ---- */

/* With several inputs, each run has one. */
static int start_one(struct etch_diagnosis *d, int64_t number, const char *bundle,
                     const struct etch_runner_watches *watches, struct etch_error *err)
{
    struct etch_runner_input input = {0};

    if (d->inputs.n) {
        input.which = etch_inputs_next(&d->inputs);
        input.argv = etch_inputs_argv(&d->inputs, input.which, d->o->argv);
        input.file = d->inputs.in_argv ? NULL : d->inputs.v[input.which].path;
        if (!input.argv)
            return etch_error_no_memory(err);
    }
    if (etch_runner_start(&d->runner, number, bundle, watches, d->inputs.n ? &input : NULL))
        return 0;
    etch_inputs_free_argv(input.argv);
    return etch_error_set_errno(err, errno, "cannot start a run");
}

static int start_more(struct etch_diagnosis *d, unsigned limit, struct etch_error *err)
{
    while (etch_runner_busy(&d->runner) < d->runner.jobs &&
           d->stop.runs - d->stored + etch_runner_busy(&d->runner) < limit) {
        int64_t number = etch_store_reserve(d->store, err);
        uint32_t set = etch_stop_next_set(d->round.sets.v, d->round.sets.n);
        struct etch_runner_watches watches = {.list = d->round.watches.v,
                                              .n = d->round.watches.n,
                                              .plan = d->round.plan[0] ? d->round.plan : NULL,
                                              .set = set,
                                              .sigma = d->round.number ? d->round.sigma : 0};
        char bundle[4200];

        if (number < 0)
            return -1;
        snprintf(bundle, sizeof(bundle), "%.4000s/%06" PRId64 ".etch", d->folder, number);
        if (start_one(d, number, bundle, &watches, err) < 0)
            return -1;
        if (d->round.number) {
            ETCH_ASSERT_MSG(set < d->round.sets.n, "set %u of %zu", set, d->round.sets.n);
            d->round.sets.v[set].tries++;
        }
    }
    return 0;
}

/* True if more runs of the same inputs will show nothing new: each ran twice, and no input fails, or no input passes.
 */
static bool inputs_are_told(const struct etch_diagnosis *d)
{
    return d->inputs.n && !d->o->patient && d->stop.runs >= 2 * d->inputs.n && etch_inputs_are_alike(&d->inputs);
}

static bool is_over(const struct etch_diagnosis *d)
{
    const struct etch_diagnose_observer *o = &d->observer;

    return d->done || etch_stop_is_hopeless(&d->stop) || inputs_are_told(d) ||
           (o->is_interrupted && o->is_interrupted(o->context)) ||
           (d->o->time > 0 && etch_time_seconds() - d->began > d->o->time);
}

/* What to do about a program that never passes. */
static const char no_pass[] =
    "an input with which it passes: --inputs 'FILES' -- PROG {}, or etch record -o pass.etch PROG OTHER-ARGUMENTS";

static void advise(struct etch_diagnosis *d)
{
    char text[512];

    if (d->advised || d->stop.passed || d->stop.runs < ETCH_STOP_NEVER_PASSES || d->inputs.n || !d->observer.advise)
        return;
    d->advised = true;
    snprintf(text, sizeof(text), "all of the first %u runs failed, so there is nothing to compare with (try: %s)",
             d->stop.runs, no_pass);
    d->observer.advise(d->observer.context, text);
}

/* A script that starts another file than BIN would run for ever. */
static int check_subject(const struct etch_diagnosis *d, struct etch_error *err)
{
    if (!d->o->program || d->runs.bundles.n || !d->runs.foreign)
        return 0;
    etch_error_set(err, "%s did not run: %s started no process of this file", d->o->program, d->o->argv[0]);
    return etch_error_advise(err, "--program with the very file that %s runs", d->o->argv[0]);
}

static int take_result(struct etch_diagnosis *d, const struct etch_runner_result *result, struct etch_error *err)
{
    bool passed = result->verdict == ETCH_VERDICT_PASS, kept;

    if (d->inputs.n)
        etch_inputs_take(&d->inputs, result->which, !passed);
    if (etch_diagnosis_keep(d, result, &kept, err) < 0)
        return -1;
    if (check_subject(d, err) < 0)
        return -1;
    advise(d);
    if (!result->sigma && passed && result->seconds * SLOWDOWN > d->runner.tracked_timeout)
        d->runner.tracked_timeout = result->seconds * SLOWDOWN;
    return kept ? consider(d, passed ? etch_diagnosis_set_of(d, result) : NULL, err) : 0;
}

static int loop(struct etch_diagnosis *d, struct etch_error *err)
{
    while (!is_over(d)) {
        if (etch_diagnosis_lab_is_due(d) && !etch_runner_busy(&d->runner)) {
            if (etch_diagnosis_use_lab(d, err) < 0)
                return -1;
            d->done |= etch_diagnosis_prefers_lab(d);
            continue;
        }
        struct etch_diagnose_state state = etch_diagnosis_state(d);
        struct etch_runner_result result;

        if (!etch_diagnosis_lab_is_due(d) && start_more(d, d->o->runs, err) < 0)
            return -1;
        if (!etch_runner_busy(&d->runner))
            return 0;
        if (d->observer.progress)
            d->observer.progress(d->observer.context, &state);
        if (!etch_runner_wait(&d->runner, NAP, &result))
            continue;
        if (!result.recorded) {
            *err = result.err;
            return -1;
        }
        if (take_result(d, &result, err) < 0)
            return -1;
    }
    return 0;
}

int etch_diagnosis_run(struct etch_diagnosis *d, struct etch_error *err)
{
    int status = loop(d, err);

    etch_runner_close(&d->runner);
    return status;
}

void etch_diagnosis_kill(const struct etch_diagnosis *d)
{
    etch_runner_kill(&d->runner);
}

/* ---- Beginning and end ---- */

/* The diagnosed binary: --program if it is given, else the program of the command. */
static int find_program(struct etch_diagnosis *d, struct etch_error *err)
{
    struct etch_elf elf;

    if (d->o->program) {
        snprintf(d->program, sizeof(d->program), "%s", d->o->program);
        return etch_elf_read(&elf, d->program, err);
    }
    if (etch_record_find_program(d->o->argv[0], d->program, sizeof(d->program), err) < 0)
        return -1;
    if (etch_elf_read(&elf, d->program, err) == 0)
        return 0;
    return etch_error_advise(err, "--program PROG, where %s is a script that runs PROG", d->o->argv[0]);
}

static int begin(struct etch_diagnosis *d, struct etch_error *err)
{
    if (find_program(d, err) < 0)
        return -1;
    if (d->o->inputs && etch_inputs_open(&d->inputs, d->o->inputs, d->o->argv, err) < 0)
        return -1;
    d->lab.tried |= d->inputs.n > 0; /* the lab runs one input */
    d->runs.program = d->program;
    d->runs.bug = d->o->bug;
    d->runs.input = d->o->input;
    d->runs.lenient = true;
    d->stop.slots = ETCH_WATCH_SLOTS;
    d->stop.patient = d->o->patient;
    d->stop.native = strcmp(d->o->source, "vpt") != 0 && strcmp(d->o->source, "lab") != 0;
    if (strcmp(d->o->source, "lab") == 0 && etch_lab_twin(&d->twin, d->program, err) < 0)
        return -1;
    if (etch_run_set_open(&d->runs, err) < 0 || etch_diagnosis_open_store(d, err) < 0 ||
        (d->o->from && etch_diagnosis_take_from(d, d->o->from, err) < 0))
        return -1;
    d->runner = (struct etch_runner){.argv = d->o->argv,
                                     .source = d->o->source,
                                     .fails_if = d->o->fails_if,
                                     .input = d->o->input,
                                     .subject = d->o->program,
                                     .twin = d->twin.path[0] ? d->twin.path : NULL,
                                     .timeout = d->o->timeout,
                                     .jobs = d->o->jobs};
    if (etch_runner_open(&d->runner, err) < 0)
        return -1;
    return d->failures ? consider(d, NULL, err) : 0;
}

int etch_diagnosis_open(struct etch_diagnosis **diagnosis, const struct etch_diagnose_options *options,
                        const struct etch_diagnose_observer *observer, struct etch_error *err)
{
    struct etch_diagnosis *d = *diagnosis = calloc(1, sizeof(*d));

    if (!d)
        return etch_error_no_memory(err);
    d->o = options;
    d->observer = *observer;
    d->began = etch_time_seconds();
    return begin(d, err);
}

struct etch_diagnose_state etch_diagnosis_state(const struct etch_diagnosis *d)
{
    const struct etch_best *best = &d->stop.best;

    return (struct etch_diagnose_state){.runs = d->stop.runs,
                                        .failures = d->failures,
                                        .unplaced = d->unplaced,
                                        .round = d->round.number,
                                        .sigma = d->round.sigma,
                                        .best = best->text,
                                        .best_f = best->f,
                                        .needed = best->text && best->f >= ETCH_STOP_STRONG ? d->needed : 0,
                                        .seconds = etch_time_seconds() - d->began,
                                        .folder = d->folder,
                                        .schedules = d->lab.schedules,
                                        .experiments = d->lab.experiment.cause.runs,
                                        .lab_failed = d->lab.usable,
                                        .sureness = !d->lab.experiment.cause.claim.n ? NULL
                                                    : d->lab.proven                  ? "proven"
                                                                                     : "necessary"};
}

struct etch_run_set *etch_diagnosis_runs(struct etch_diagnosis *d)
{
    return etch_diagnosis_prefers_lab(d) ? &d->lab.runs : &d->runs;
}

bool etch_diagnosis_inputs(struct etch_diagnosis *d, unsigned i, char *text, size_t size)
{
    return d->inputs.n && etch_inputs_text(&d->inputs, i, text, size);
}

static void note_inputs(struct etch_diagnosis *d)
{
    char text[2048];

    for (unsigned i = 0; etch_diagnosis_inputs(d, i, text, sizeof(text)); i++)
        etch_run_set_note(&d->runs, text);
}

Etch__Sketch *etch_diagnosis_sketch(struct etch_diagnosis *d, bool all, struct etch_error *err)
{
    char text[512];

    if (etch_diagnosis_prefers_lab(d))
        return etch_diagnosis_lab_sketch(d, all, err);
    if (!d->failures && d->unplaced) {
        etch_error_set(err, "%u of %u runs failed, none of them at a known place of %s", d->unplaced, d->stop.runs,
                       d->o->argv[0]);
        etch_error_advise(err, "a longer --timeout, if they hang; build it with etch cc -g");
        return NULL;
    }
    if (d->lab.why[0])
        etch_run_set_note(&d->runs, d->lab.why);
    note_inputs(d);
    if (!d->stop.passed && !d->inputs.n && d->stop.runs >= ETCH_STOP_NEVER_PASSES) {
        snprintf(text, sizeof(text), "To compare: %s.", no_pass);
        etch_run_set_note(&d->runs, text);
    }
    if (etch_run_set_prepare(&d->runs, err) < 0)
        return NULL;
    return etch_run_set_compose(&d->runs, d->round.number, d->round.sigma, all, err);
}

const char *etch_diagnosis_explain(const struct etch_diagnosis *d, size_t i)
{
    return i < d->lab.explain.lines.n ? d->lab.explain.lines.v[i] : NULL;
}

void etch_diagnosis_free(struct etch_diagnosis *d)
{
    if (!d)
        return;
    etch_runner_close(&d->runner);
    etch_round_release(&d->round);
    etch_run_set_release(&d->runs);
    etch_inputs_release(&d->inputs);
    etch_store_close(d->store);
    etch_lab_phase_release(&d->lab);
    if (d->clock)
        etch__clock__free_unpacked(d->clock, NULL);
    free(d->stop.best.text);
    free(d);
}
