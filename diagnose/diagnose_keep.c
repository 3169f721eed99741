/* SPDX-License-Identifier: MIT */
/* The runs that a diagnosis keeps, in the store and in memory. A run that adds nothing is only counted, so that the
 * store stays small and is read quickly. */
#include "base/index.h"
#include "base/log.h"
#include "base/path.h"
#include "diagnose/diagnose_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return etch_hash(hash, text, strlen(text) + 1);
}

/* One folder for each build, arguments, input and check: runs of others are not to be mixed in. */
static int choose_folder(struct etch_diagnosis *d, struct etch_error *err)
{
    uint64_t hash = ETCH_HASH_START;
    struct etch_elf elf;

    if (etch_elf_read(&elf, d->program, err) < 0)
        return -1;
    hash = etch_hash(hash, elf.build_id, elf.build_id_size);
    if (!elf.build_id_size) {
        struct stat st;

        if (stat(d->program, &st) == 0)
            hash = etch_hash(hash, &st.st_mtim, sizeof(st.st_mtim));
    }
    for (char **a = d->o->argv + (d->o->program ? 0 : 1); *a; a++)
        hash = mix_text(hash, *a);
    hash = mix_text(hash, d->o->source);
    if (d->o->fails_if)
        hash = mix_text(hash, d->o->fails_if);
    if (d->o->input)
        hash = mix_text(mix_text(hash, "<"), d->o->input);
    hash ^= d->inputs.n ? etch_inputs_hash(&d->inputs) : 0;
    snprintf(d->folder, sizeof(d->folder), "%.3800s/%.150s-%016" PRIx64, d->o->store, etch_path_name(d->program), hash);
    return 0;
}

bool etch_diagnosis_is_ours(const struct etch_diagnosis *d, const struct etch_run_bundle *b)
{
    return b->failing && !b->unplaced && d->runs.sliced && b->bucket && strcmp(b->bucket, d->runs.sliced) == 0;
}

unsigned etch_diagnosis_count_tracked(const struct etch_diagnosis *d, const char *bucket)
{
    unsigned n = 0;

    for (size_t i = 0; i < d->runs.bundles.n; i++) {
        const struct etch_run_bundle *b = &d->runs.bundles.v[i];

        n += b->failing && b->tracked && !b->unplaced && (!bucket || strcmp(b->bucket, bucket) == 0);
    }
    return n;
}

static void account(struct etch_diagnosis *d, const struct etch_run_bundle *b)
{
    d->stop.runs++;
    d->stop.passed += !b->failing;
    d->unplaced += b->unplaced;
    d->failures += b->failing && !b->unplaced;
    d->stop.passing_kept[b->tracked] += !b->failing;
    d->stop.failing_tracked = etch_diagnosis_count_tracked(d, d->runs.sliced);
}

/* A run whose bundle is not kept. */
static void count_only(struct etch_diagnosis *d, enum etch_verdict verdict)
{
    d->stop.runs++;
    d->stop.passed += verdict == ETCH_VERDICT_PASS;
    d->failures += verdict != ETCH_VERDICT_PASS;
}

static int take_stored(void *context, const struct etch_store_run *run)
{
    struct etch_diagnosis *d = context;
    struct etch_error ignored;
    size_t before = d->runs.bundles.n;
    char path[4400];

    snprintf(path, sizeof(path), "%s/%s", d->folder, run->bundle);
    if (!run->bundle[0])
        count_only(d, run->verdict);
    else if (etch_run_set_add(&d->runs, path, run->verdict, run->sigma != 0, &ignored) == 0 &&
             d->runs.bundles.n > before)
        account(d, &d->runs.bundles.v[d->runs.bundles.n - 1]);
    else
        return 0; /* a bundle that is gone or damaged is as if it had not run */
    d->round.sigma = run->sigma > d->round.sigma ? run->sigma : d->round.sigma;
    d->stored++;
    return 0;
}

int etch_diagnosis_open_store(struct etch_diagnosis *d, struct etch_error *err)
{
    if (choose_folder(d, err) < 0 || etch_store_open(&d->store, d->folder, d->o->fresh || d->inputs.n, err) < 0)
        return -1;
    return etch_store_list(d->store, take_stored, d, err);
}

int etch_diagnosis_take_from(struct etch_diagnosis *d, const char *bundle, struct etch_error *err)
{
    size_t before = d->runs.bundles.n, foreign = d->runs.foreign;
    enum etch_verdict verdict = d->o->fails_if ? ETCH_VERDICT_FAIL : ETCH_VERDICT_AS_RECORDED;
    const struct etch_run_bundle *b;

    if (etch_run_set_add(&d->runs, bundle, verdict, false, err) < 0)
        return -1;
    b = d->runs.bundles.n > before ? &d->runs.bundles.v[before] : NULL;
    if (b && b->failing) {
        account(d, b);
        d->stored++;
        return 0;
    }
    if (d->runs.foreign > foreign) {
        etch_error_set(err, "%s is of another program, or of another build of it", bundle);
        return etch_error_advise(err, "the build that the recording was made of: etch info shows its build-id");
    }
    etch_error_set(err, "%s has no failure", bundle);
    return etch_error_advise(err, "the recording of a run that failed; or --fails-if, if its output or exit status "
                                  "shows the failure");
}

struct etch_set_seen *etch_diagnosis_set_of(struct etch_diagnosis *d, const struct etch_runner_result *result)
{
    return d->round.number && result->sigma == d->round.sigma && result->set < d->round.sets.n
               ? &d->round.sets.v[result->set]
               : NULL;
}

/* Takes the bundle in. Returns whether it adds anything, or -1 with `err` set. */
static int take_in(struct etch_diagnosis *d, const struct etch_runner_result *result, struct etch_error *err)
{
    struct etch_set_seen *set = etch_diagnosis_set_of(d, result);
    size_t before = d->runs.bundles.n;
    const struct etch_run_bundle *b;
    bool ours;

    if (etch_run_set_add(&d->runs, result->bundle, result->verdict, result->sigma != 0, err) < 0)
        return -1;
    if (d->runs.bundles.n == before)
        return false;
    b = &d->runs.bundles.v[before];
    ours = etch_diagnosis_is_ours(d, b);
    if (set) { /* failures of another bug say nothing of a set */
        set->passing += !b->failing;
        set->failing += ours;
    }
    if (!b->failing || !b->tracked ||
        !etch_stop_enough_failures(&d->stop, ours, !b->unplaced, etch_diagnosis_count_tracked(d, b->bucket), set))
        return true;
    etch_run_set_drop_last(&d->runs);
    return false;
}

/* Why a run is kept, or not; for the log. */
static const char *reason(const struct etch_runner_result *result, bool kept, bool unusable)
{
    if (kept)
        return result->sigma ? "kept: adds to what is known with these watches" : "kept: few were recorded unwatched";
    if (unusable)
        return "only counted: the recording cannot be used";
    return result->verdict == ETCH_VERDICT_PASS ? "only counted: enough passing runs like it are kept"
                                                : "only counted: enough failing runs like it are kept";
}

int etch_diagnosis_keep(struct etch_diagnosis *d, const struct etch_runner_result *result, bool *kept,
                        struct etch_error *err)
{
    struct etch_store_run run = {
        .id = result->number, .verdict = result->verdict, .sigma = result->sigma, .seconds = result->seconds};
    size_t before = d->runs.foreign + d->runs.unended;
    int taken = 0;

    if (result->verdict != ETCH_VERDICT_PASS ||
        !etch_stop_enough_passes(&d->stop, result->sigma != 0, etch_diagnosis_set_of(d, result)))
        taken = take_in(d, result, err);
    if (taken < 0)
        return -1;
    *kept = taken > 0;
    if (*kept && d->inputs.n)
        d->runs.bundles.v[d->runs.bundles.n - 1].input = d->inputs.v[result->which].path;
    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "run %" PRId64 ": %s, %s", result->number,
             etch_verdict_name(result->verdict), reason(result, *kept, d->runs.foreign + d->runs.unended > before));
    if (*kept) {
        account(d, &d->runs.bundles.v[d->runs.bundles.n - 1]);
        snprintf(run.bundle, sizeof(run.bundle), "%s", etch_path_name(result->bundle));
    } else {
        unlink(result->bundle);
        count_only(d, result->verdict);
    }
    return etch_store_add(d->store, &run, err);
}
