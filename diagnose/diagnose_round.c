/* SPDX-License-Identifier: MIT */
/* A round of a diagnosis: the watches of the next runs. */
#include "base/assert.h"
#include "base/log.h"
#include "calibrate/calibration.h"
#include "calibrate/kept.h"
#include "collector/clock_record.h"
#include "collector/watch.h"
#include "diagnose/diagnose_model.h"
#include "proto/bundle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_watches(struct etch_round *r)
{
    for (size_t i = 0; i < r->watches.n; i++)
        free(r->watches.v[i]);
    r->watches.n = 0;
}

void etch_round_release(struct etch_round *r)
{
    drop_watches(r);
    etch_array_free(&r->watches);
    etch_array_free(&r->sets);
}

static bool start_sets(struct etch_diagnosis *d, size_t n)
{
    const struct etch_set_seen none = {0};

    d->round.sets.n = 0;
    for (size_t i = 0; i < n || i < 1; i++)
        if (!etch_array_push(&d->round.sets, none))
            return false;
    d->stop.sets = d->round.sets.v;
    d->stop.n_sets = d->round.sets.n;
    return true;
}

/* ---- Sets for debug registers ---- */

static int write_plan(const char *path, const Etch__Plan *plan, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;
    struct etch_bundle_writer *writer;
    int status = etch_bundle_create(&writer, path, err);

    if (status < 0)
        return -1;
    record.body_case = ETCH__RECORD__BODY_PLAN;
    record.plan = (Etch__Plan *)(uintptr_t)plan;
    status = etch_bundle_write(writer, &record, err);
    if (status == 0)
        status = etch_bundle_finish(writer, err);
    if (status < 0)
        etch_bundle_discard(writer);
    else
        etch_bundle_writer_free(writer);
    return status;
}

/* A plan that uses the locations of objects which the runs so far have shown. NULL when memory is short. */
static Etch__Plan *make_plan(const struct etch_diagnosis *d)
{
    ETCH_ARRAY(struct etch_slice_seen) seen = {0};
    Etch__Plan *made = NULL;
    bool good = true;

    for (size_t i = 0; i < d->runs.bundles.n; i++) {
        const struct etch_run *run = d->runs.bundles.v[i].run;

        for (size_t k = 0; good && run && k < run->sites.n; k++) {
            const struct etch_slice_seen site = {run->sites.v[k].instruction, run->sites.v[k].object};

            good = etch_array_push(&seen, site);
        }
    }
    if (good)
        made = etch_slice_plan(d->runs.slicing, d->round.sigma, d->stop.slots, seen.v, seen.n);
    etch_array_free(&seen);
    return made;
}

static size_t count_found(const Etch__Plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_sets; i++)
        for (size_t k = 0; k < plan->sets[i]->n_watches; k++)
            n += plan->sets[i]->watches[k]->global && plan->sets[i]->watches[k]->site;
    return n;
}

bool etch_diagnosis_has_found(const struct etch_diagnosis *d)
{
    Etch__Plan *made = make_plan(d);
    bool more = made && count_found(made) > d->round.found;

    if (made)
        etch__plan__free_unpacked(made, NULL);
    return more;
}

/* A debug register takes shared memory only, four at a time: runs take turns at the sets of the plan. */
static int plan_sets(struct etch_diagnosis *d, struct etch_error *err)
{
    Etch__Plan *made = make_plan(d);
    int status;

    if (!made)
        return etch_error_no_memory(err);
    if (!start_sets(d, made->n_sets)) {
        etch__plan__free_unpacked(made, NULL);
        return etch_error_no_memory(err);
    }
    d->round.found = count_found(made);
    snprintf(d->round.plan, sizeof(d->round.plan), "%.4000s/round-%u.plan", d->folder, d->round.number);
    status = write_plan(d->round.plan, made, err);
    if (!made->n_sets)
        d->round.plan[0] = '\0';
    etch__plan__free_unpacked(made, NULL);
    return status;
}

/* ---- Watches for vpt ---- */

static bool has_watch(const struct etch_round *r, const char *text)
{
    for (size_t i = 0; i < r->watches.n; i++)
        if (strcmp(r->watches.v[i], text) == 0)
            return true;
    return false;
}

static bool add_watch(struct etch_diagnosis *d, const Etch__Operand *op)
{
    /* QEMU shows the accesses of an instruction. A call instruction accesses only the stack: the watch is on the
     * instruction in the called code. */
    const uint64_t site = op->call ? op->inner : op->address;
    const Etch__Slice *slice = d->runs.slice;
    char text[64], *copy;

    if (!site || !op->size || op->size > 8 || d->round.watches.n == ETCH_RECORD_MAX_WATCHES)
        return true;
    if (slice->n_modules && site >= slice->modules[0]->added) {
        etch_run_set_note(&d->runs, "what statements in shared libraries use is not watched: the source vpt watches "
                                    "the program's own instructions (--source soft or none watches them)");
        return true;
    }
    snprintf(text, sizeof(text), "@0x%" PRIx64 ":%u%s", site, op->size, op->shared ? "" : ":here");
    if (has_watch(&d->round, text))
        return true;
    copy = strdup(text);
    if (copy && etch_array_push(&d->round.watches, copy))
        return true;
    free(copy);
    return false;
}

/* Watches the operands of the first `sigma` statements. Shared memory is watched wherever it is used from then on, a
 * thread's own memory only at its statement. */
static int plan(struct etch_diagnosis *d, struct etch_error *err)
{
    const Etch__Slice *slice = d->runs.slice;

    if (d->stop.native)
        return plan_sets(d, err);
    if (!start_sets(d, 1))
        return etch_error_no_memory(err);
    drop_watches(&d->round);
    for (size_t i = 0; i < slice->n_statements && i < d->round.sigma; i++)
        for (size_t k = 0; k < slice->statements[i]->n_operands; k++)
            if (!add_watch(d, slice->statements[i]->operands[k]))
                return etch_error_no_memory(err);
    return 0;
}

/* ---- The round ---- */

/* Measures the clocks, which order accesses across CPUs. One measurement serves all runs. It is made before the first
 * run with watches, and only if there are threads. A crowded machine may need another try. */
static void measure_clocks(struct etch_diagnosis *d)
{
    struct etch_calibration_options options = {.skip_trap = true};
    struct etch_calibration calibration;
    struct etch_error ignored;
    bool threaded = false;

    for (size_t i = 0; i < d->runs.bundles.n; i++)
        threaded |= d->runs.bundles.v[i].threaded;
    for (int i = 0; threaded && i < 3 && !(d->clock && d->clock->n_skews); i++) {
        if (d->clock)
            etch__clock__free_unpacked(d->clock, NULL);
        d->clock = NULL;
        if (etch_calibrate_kept(&calibration, &options, &ignored) == 0) {
            d->clock = etch_clock_record(&calibration, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
            etch_calibration_free(&calibration);
        }
    }
    d->runner.clock = d->clock;
}

int etch_diagnosis_next_round(struct etch_diagnosis *d, uint32_t sigma, struct etch_error *err)
{
    uint32_t statements;

    ETCH_ASSERT(d->runs.slice); /* there was a failure to slice from */
    statements = (uint32_t)d->runs.slice->n_statements;
    measure_clocks(d);
    d->round.number++;
    d->stop.plans = sigma == d->round.sigma ? d->stop.plans + 1 : 1;
    d->round.sigma = sigma < statements ? sigma : statements;
    d->stop.exhausted = d->round.sigma == statements;
    d->stop.failing_tracked = etch_diagnosis_count_tracked(d, d->runs.sliced);
    d->runner.sync = etch_run_set_hangs(&d->runs); /* else it would only shift the times at which threads start */
    if (plan(d, err) < 0)
        return -1;
    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG,
             "round %u: watches what %u of %u statements use, plan %u for them: %zu sets of at most %u, %zu watches of "
             "vpt, %zu objects that runs have shown%s",
             d->round.number, d->round.sigma, statements, d->stop.plans, d->round.sets.n, d->stop.slots,
             d->round.watches.n, d->round.found, d->stop.exhausted ? ", the whole slice" : "");
    return 0;
}
