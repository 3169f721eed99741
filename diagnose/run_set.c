/* SPDX-License-Identifier: MIT */
/* Bundles taken in, the slice, and the runs made with it; see run_set.h. */
#include "diagnose/run_set.h"
#include "base/assert.h"
#include "base/log.h"
#include "diagnose/lab_twin.h"
#include "diagnose/run_set_model.h"
#include "diagnose/source_text.h"

#include "decoder/recording.h"
#include "sketch/run_build.h"

#include <stdlib.h>
#include <string.h>

#define ROOM ((size_t)128 << 20) /* bytes of recordings and steps that are kept */
#define OPEN_MAX 128u            /* files that stay open until their control flow is decoded */
#define ACCESS_SIZE 512u         /* bytes of a recorded access, with its registers */

static const Etch__Slice *exits_of(struct etch_run_set *s, const struct etch_recording *recording,
                                   enum etch_verdict verdict);

/* ---- Recordings: opened and decoded once, as long as there is room ---- */

static size_t size_of(const struct etch_run_bundle *b)
{
    return etch_kept_steps_size(&b->steps) + b->recording->accesses.n * ACCESS_SIZE;
}

static void close_recording(struct etch_run_set *s, struct etch_run_bundle *b)
{
    etch_kept_steps_release(&b->steps);
    etch_recording_free(b->recording);
    b->recording = NULL;
    ETCH_ASSERT_MSG(b->size <= s->kept, "%zu bytes of %zu", b->size, s->kept);
    s->kept -= b->size;
    b->size = 0;
}

static int open_recording(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_error *err)
{
    static const struct etch_symbols_options options = {0};
    struct etch_recording *recording;

    if (!s->symbols && !(s->symbols = etch_symbols_new(&options)))
        return etch_error_no_memory(err);
    if (b->recording)
        return 0;
    if (etch_recording_open(&recording, b->path, err) < 0)
        return -1;
    b->recording = recording;
    s->counts.opened++;
    b->steps.room = ROOM;
    b->steps.over = false;
    return 0;
}

/* Builds a run of the bundle's recording, which is decoded unless its steps are kept. */
static int build(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_names *names,
                 struct etch_run_options *options, struct etch_run **run, struct etch_error *err)
{
    size_t before = b->steps.times;
    int status;

    options->verdict = b->verdict;
    options->build_id = &s->build_id;
    options->exits = exits_of(s, b->recording, b->verdict);
    options->symbols = s->symbols;
    options->kept = &b->steps;
    options->core = b->core;
    options->is_hidden = etch_run_set_hides;
    options->hidden_context = s;
    status = etch_run_build(run, names, b->recording, options, err);
    s->counts.decoded += b->steps.times - before;
    return status;
}

/* The recording may be needed again: with a slice, with another slice. Until then its file is closed. */
static void let_go(struct etch_run_set *s, struct etch_run_bundle *b)
{
    s->kept -= b->size;
    b->size = size_of(b);
    s->kept += b->size;
    if ((b->recording->streams.n && !b->steps.whole && (b->steps.times || s->bundles.n >= OPEN_MAX)) || s->kept > ROOM)
        close_recording(s, b);
    else if (b->steps.whole)
        etch_recording_close_streams(b->recording);
}

static void free_failure(struct etch_run_bundle *b)
{
    if (b->failure)
        etch__failure__free_unpacked(b->failure, NULL);
    b->failure = NULL;
}

static void free_run(struct etch_run_set *s, struct etch_run_bundle *b)
{
    s->counts.facts += b->run ? b->run->facts_made : 0;
    etch_run_free(b->run);
    b->run = NULL;
}

static void release_bundle(struct etch_run_set *s, struct etch_run_bundle *b)
{
    close_recording(s, b);
    free_failure(b);
    free_run(s, b);
    free(b->path);
    free(b->core);
    free(b->bucket);
}

static void drop_runs(struct etch_run_set *s)
{
    for (size_t i = 0; i < s->bundles.n; i++)
        free_run(s, &s->bundles.v[i]);
    if (s->slice)
        etch__slice__free_unpacked(s->slice, NULL);
    etch_slice_free(s->slicing);
    s->slice = NULL;
    s->slicing = NULL;
    free(s->sliced);
    s->sliced = NULL;
    etch_names_release(&s->names);
}

static void drop_model(struct etch_run_set *s);

void etch_run_set_drop_notes(struct etch_run_set *s)
{
    for (size_t i = 0; i < s->notes.n; i++)
        free(s->notes.v[i]);
    s->notes.n = 0;
}

static struct etch_run_counts count_all(const struct etch_run_set *s)
{
    struct etch_run_counts counts = s->counts;

    for (size_t i = 0; i < s->bundles.n; i++)
        counts.facts += s->bundles.v[i].run ? s->bundles.v[i].run->facts_made : 0;
    counts.dwarf = s->symbols ? etch_symbols_loaded(s->symbols) : 0;
    return counts;
}

void etch_run_set_release(struct etch_run_set *s)
{
    struct etch_run_counts c = count_all(s);

    etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG,
             "runs: %zu kept, %zu recordings opened, %zu decoded, DWARF of %zu files, %zu fact tables, %zu rankings, "
             "%zu pictures",
             s->bundles.n, c.opened, c.decoded, c.dwarf, c.facts, c.ranked, c.laid_out);
    drop_runs(s);
    for (size_t i = 0; i < s->bundles.n; i++)
        release_bundle(s, &s->bundles.v[i]);
    etch_symbols_free(s->symbols);
    etch_policy_free(s->policy);
    free(s->twin);
    etch_run_set_drop_notes(s);
    drop_model(s);
    for (size_t i = 0; i < s->libraries.n; i++)
        free(s->libraries.v[i]);
    etch_array_free(&s->libraries);
    etch_array_free(&s->exits);
    etch_array_free(&s->bundles);
    etch_array_free(&s->notes);
    for (size_t i = 0; i < s->lasting.n; i++)
        free(s->lasting.v[i]);
    etch_array_free(&s->lasting);
    memset(s, 0, sizeof(*s));
}

static void add_once(etch_run_notes *list, const char *text)
{
    char *copy;

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], text) == 0)
            return;
    copy = strdup(text);
    if (copy && !etch_array_push(list, copy))
        free(copy);
}

void etch_run_set_note_now(struct etch_run_set *s, const char *text)
{
    add_once(&s->notes, text);
}

void etch_run_set_note(struct etch_run_set *s, const char *text)
{
    add_once(&s->lasting, text);
}

/* ---- Taking bundles in ---- */

/* The statements that can have given a recording's exit status, or wrong output. NULL: the run ended otherwise, or
 * nothing is known. */
static const Etch__Slice *exits_of(struct etch_run_set *s, const struct etch_recording *recording,
                                   enum etch_verdict verdict)
{
    uint32_t status = recording->outcome && recording->outcome->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS
                          ? recording->outcome->exit_status
                          : 0;
    struct etch_run_exits exits = {.status = status};
    struct etch_error ignored; /* slicing says it again */

    if ((!status && verdict != ETCH_VERDICT_FAIL) || etch_run_set_open(s, &ignored) < 0)
        return NULL;
    for (size_t i = 0; i < s->exits.n; i++)
        if (s->exits.v[i].status == status)
            return s->exits.v[i].statements;
    exits.statements = etch_exits_message(s->model, (int)status);
    if (exits.statements && !etch_array_push(&s->exits, exits)) {
        etch__slice__free_unpacked(exits.statements, NULL);
        exits.statements = NULL;
    }
    return exits.statements;
}

/* Which libraries are the program's own. NULL where that is not known. */
static const Etch__Slice *layout_of(struct etch_run_set *s)
{
    struct etch_error ignored; /* slicing says it again */

    if (!s->layout && etch_run_set_open(s, &ignored) == 0)
        s->layout = etch_model_message(s->model);
    return s->layout;
}

/* How a failing run ended, without a slice. */
static int find_failure(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_run **run,
                        struct etch_error *err)
{
    struct etch_run_options options = {.layout = layout_of(s)};
    struct etch_names names = {0};
    int status = build(s, b, &names, &options, run, err);

    if (status == 0) {
        free_failure(b);
        b->failure = (*run)->failure;
        (*run)->failure = NULL;
    }
    etch_names_release(&names);
    return status;
}

static int find_bucket(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_error *err)
{
    struct etch_run *run = NULL;
    int status = find_failure(s, b, &run, err);

    if (status == 0) {
        b->failing = run->failing;
        b->unplaced = run->failing && run->failing_place == ETCH_NOWHERE;
        b->bucket = run->bucket ? strdup(run->bucket) : NULL;
        if (b->failing && !b->bucket)
            status = etch_error_no_memory(err);
    }
    etch_run_free(run);
    return status;
}

/* A recording that was cut may lack the failure: the run did not pass for that. A process that ended without a word
 * left rings and no outcome. */
static bool is_unended(const struct etch_recording *r, enum etch_verdict verdict)
{
    bool silent = r->program && r->program->source == ETCH__SOURCE__SOURCE_SOFT;

    return !verdict && (r->cut || r->damaged || silent) && !r->failure && !r->outcome;
}

int etch_run_set_open(struct etch_run_set *s, struct etch_error *err)
{
    if (s->model)
        return 0;
    if (etch_model_open(&s->model, s->program, (const char *const *)s->libraries.v, s->libraries.n, err) < 0)
        return -1;
    for (size_t i = 0; etch_model_note(s->model, i); i++)
        etch_run_set_note(s, etch_model_note(s->model, i));
    return 0;
}

static void drop_model(struct etch_run_set *s)
{
    for (size_t i = 0; i < s->exits.n; i++)
        etch__slice__free_unpacked(s->exits.v[i].statements, NULL);
    s->exits.n = 0;
    if (s->layout)
        etch__slice__free_unpacked(s->layout, NULL);
    s->layout = NULL;
    etch_source_text_free(s->source); /* it asks the model */
    s->source = NULL;
    etch_model_free(s->model);
    s->model = NULL;
}

static bool has_library(const struct etch_run_set *s, const char *path)
{
    for (size_t i = 0; i < s->libraries.n; i++)
        if (strcmp(s->libraries.v[i], path) == 0)
            return true;
    return false;
}

static void note_other_build(struct etch_run_set *s, const char *path)
{
    char text[512];

    snprintf(text, sizeof(text), "%.300s is not the one that ran, or cannot be read: the slice does not go through it",
             path);
    etch_run_set_note(s, text);
}

/* Libraries that the program loads by itself are seen only when it runs. The model is made anew with each that comes.
 */
static int add_libraries(struct etch_run_set *s, const struct etch_recording *recording, struct etch_error *err)
{
    size_t before = s->libraries.n;
    struct etch_error ignored; /* slicing says it again */

    if (etch_run_set_open(s, &ignored) < 0)
        return 0;
    for (size_t i = 0; i < recording->images.n; i++) {
        const Etch__Image *image = recording->images.v[i];
        char *copy;

        if (!(image->prot & 4) || image->path[0] != '/' ||
            etch_model_covers(s->model, image->path, image->build_id.data, image->build_id.len))
            continue;
        if (has_library(s, image->path)) {
            note_other_build(s, image->path);
            continue;
        }
        copy = strdup(image->path);
        if (!copy || !etch_array_push(&s->libraries, copy)) {
            free(copy);
            return etch_error_no_memory(err);
        }
    }
    if (s->libraries.n == before)
        return 0;
    drop_runs(s);
    drop_model(s);
    for (size_t i = 0; i < s->bundles.n; i++)
        free_failure(&s->bundles.v[i]);
    return etch_run_set_open(s, err);
}

enum taken { TAKEN, FOREIGN, UNENDED };

/* Looks into a recording. Returns an enum taken, or -1 with `err` set. */
static int look_into(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_error *err)
{
    const struct etch_recording *r = b->recording;
    bool hang;

    b->key = r->program ? r->program->start_unix_ns : 0;
    b->threaded = r->threads.n > 1;
    b->failing = b->verdict ? b->verdict != ETCH_VERDICT_PASS : etch_recording_failed(r, &hang);
    if (!r->program && !s->lenient)
        return etch_error_set(err, "%s does not say which program ran", b->path);
    if (!r->program || !etch_recording_runs(b->recording, &s->build_id))
        return FOREIGN; /* of another build, or ended before the program began */
    if (is_unended(r, b->verdict))
        return UNENDED;
    return b->failing && (add_libraries(s, r, err) < 0 || find_bucket(s, b, err) < 0) ? -1 : TAKEN;
}

/* Runs of the lab are runs of the program's lab build, which has the program's bitcode and lines. */
static int choose_program(struct etch_run_set *s, const struct etch_recording *r, struct etch_error *err)
{
    if (r->source == ETCH__SOURCE__SOURCE_LAB && r->program && !s->bundles.n && !s->twin &&
        etch_lab_twin_is_of(r->program->exe, s->program)) {
        s->twin = strdup(r->program->exe);
        if (!s->twin)
            return etch_error_no_memory(err);
        s->program = s->twin;
        s->elf.build_id_size = 0;
        drop_model(s);
    }
    if (!s->elf.build_id_size && etch_elf_read(&s->elf, s->program, err) < 0)
        return -1;
    s->build_id = (ProtobufCBinaryData){s->elf.build_id_size, s->elf.build_id};
    return 0;
}

int etch_run_set_add(struct etch_run_set *s, const char *path, enum etch_verdict verdict, bool tracked,
                     struct etch_error *err)
{
    struct etch_run_bundle b = {.verdict = verdict, .tracked = tracked, .path = strdup(path)};
    int taken;

    if (!b.path)
        return etch_error_no_memory(err);
    taken = open_recording(s, &b, err) < 0 || choose_program(s, b.recording, err) < 0 ? -1 : look_into(s, &b, err);
    if (taken == FOREIGN || taken == UNENDED)
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "%s: left out: %s", path,
                 taken == FOREIGN ? "this build of the program did not run in it" : "it ends before the run does");
    s->foreign += taken == FOREIGN;
    s->unended += taken == UNENDED;
    if (taken == TAKEN) {
        let_go(s, &b);
        if (etch_array_push(&s->bundles, b))
            return 0;
        taken = etch_error_no_memory(err);
    }
    release_bundle(s, &b);
    return taken < 0 ? -1 : 0;
}

static int by_key(const void *x, const void *y)
{
    const struct etch_run_bundle *a = x, *b = y;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return strcmp(a->path, b->path);
}

void etch_run_set_drop_last(struct etch_run_set *s)
{
    ETCH_ASSERT(s->bundles.n > 0);
    release_bundle(s, &s->bundles.v[--s->bundles.n]);
}

/* ---- The slice ---- */

/* The failure as the model has it now. */
static int know_failure(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_error *err)
{
    struct etch_run *run = NULL;
    int status = open_recording(s, b, err);

    if (status == 0 && !b->failure)
        status = find_failure(s, b, &run, err);
    etch_run_free(run);
    return status;
}

static int slice_from(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_error *err)
{
    static const struct etch_slice_options slice_options = {0};
    struct etch_criterion *criterion = NULL;
    int status = etch_run_set_open(s, err);

    if (status == 0)
        status = know_failure(s, b, err);
    if (status == 0)
        status = etch_criterion_failure(&criterion, s->model, b->failure, b->recording->program, b->recording->images.v,
                                        b->recording->images.n, err);
    if (status == 0)
        status = etch_slice_make(&s->slicing, s->model, criterion, &slice_options, err);
    if (status == 0 && (!(s->slice = etch_slice_message(s->slicing)) || !(s->sliced = strdup(b->bucket))))
        status = etch_error_no_memory(err);
    etch_criterion_free(criterion);
    if (b->recording)
        let_go(s, b);
    return status;
}

/* A failure has one name, found when its bundle was taken in: functions may be called otherwise in the slice. */
static int keep_bucket(const struct etch_run_bundle *b, struct etch_error *err)
{
    char *bucket = b->run->failing && b->bucket ? strdup(b->bucket) : NULL;

    if (!b->run->failing)
        return 0;
    if (!bucket)
        return etch_error_no_memory(err);
    free(b->run->bucket);
    b->run->bucket = bucket;
    return 0;
}

static int make_run(struct etch_run_set *s, struct etch_run_bundle *b, struct etch_error *err)
{
    struct etch_run_options options = {.slice = s->slice};
    int status = open_recording(s, b, err);

    if (status < 0)
        return -1;
    status = build(s, b, &s->names, &options, &b->run, err);
    let_go(s, b);
    return status == 0 && b->run ? keep_bucket(b, err) : -1;
}

/* Why there is nothing to sketch. */
static int say_no_failure(const struct etch_run_set *s, struct etch_error *err)
{
    for (size_t i = 0; i < s->bundles.n; i++) {
        if (s->bundles.v[i].unplaced) {
            etch_error_set(err, "no failing run failed at a known place of %s", s->program);
            return etch_error_advise(err, "build it with etch cc -g; recordings of the failing runs that are whole");
        }
    }
    if (s->unended) {
        etch_error_set(err, "%zu of %zu recordings end before the run did, and no other run failed", s->unended,
                       s->unended + s->foreign + s->bundles.n);
        return etch_error_advise(err, "recordings of failing runs that are whole; etch info says where one ends");
    }
    if (!s->bundles.n && s->foreign) {
        etch_error_set(err, "none of the %zu recordings is of this build of %s", s->foreign, s->program);
        return etch_error_advise(err, "the binary that was recorded, or record this one; etch info says what ran");
    }
    etch_error_set(err, "none of the %zu runs failed", s->bundles.n);
    return etch_error_advise(err, "bundles of failing runs too, or etch diagnose, which runs until it fails");
}

int etch_run_set_prepare(struct etch_run_set *s, struct etch_error *err)
{
    struct etch_run_bundle *failure;

    if (s->bundles.n)
        qsort(s->bundles.v, s->bundles.n, sizeof(*s->bundles.v), by_key);
    if (etch_run_set_choose_failure(s, &failure, err) < 0)
        return -1;
    if (!failure)
        return say_no_failure(s, err);
    ETCH_ASSERT(failure->failing && failure->bucket);
    if (!s->sliced || strcmp(s->sliced, failure->bucket) != 0) {
        etch_log(ETCH_LOG_DIAGNOSE, ETCH_LOG_DEBUG, "slices from '%s', %s", failure->bucket,
                 s->sliced ? "which is now the commonest failure" : "the commonest failure");
        drop_runs(s);
        if (slice_from(s, failure, err) < 0)
            return -1;
        if (etch_names_slice(&s->names, s->slice) < 0)
            return etch_error_no_memory(err);
    }
    for (size_t i = 0; i < s->bundles.n; i++)
        if (!s->bundles.v[i].run && make_run(s, &s->bundles.v[i], err) < 0)
            return -1;
    return 0;
}

bool etch_run_set_is_threaded(const struct etch_run_set *s)
{
    for (size_t i = 0; i < s->bundles.n; i++)
        if (s->bundles.v[i].failing && s->bundles.v[i].run && s->bundles.v[i].run->threads.n > 1)
            return true;
    return false;
}

bool etch_run_set_hangs(const struct etch_run_set *s)
{
    return s->sliced && strncmp(s->sliced, "hang", 4) == 0;
}
