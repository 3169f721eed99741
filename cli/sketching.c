/* SPDX-License-Identifier: MIT */
/* From bundles to a sketch and out; see sketching.h. */
#include "cli/sketching.h"
#include "cli/source_text.h"

#include "decoder/recording.h"
#include "proto/bundle.h"
#include "sketch/render.h"
#include "sketch/run_build.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int out_of_memory(struct etch_error *err)
{
    return etch_error_set(err, "out of memory");
}

static void drop_runs(struct sketching *s)
{
    for (size_t i = 0; i < s->bundles.n; i++) {
        etch_run_free(s->bundles.v[i].run);
        s->bundles.v[i].run = NULL;
    }
    if (s->slice)
        etch__slice__free_unpacked(s->slice, NULL);
    etch_slice_free(s->slicing);
    s->slice = NULL;
    s->slicing = NULL;
    free(s->sliced);
    s->sliced = NULL;
    etch_names_release(&s->names);
}

static void drop_model(struct sketching *s);

static void drop_notes(struct sketching *s)
{
    for (size_t i = 0; i < s->notes.n; i++)
        free(s->notes.v[i]);
    s->notes.n = 0;
}

void sketching_release(struct sketching *s)
{
    drop_runs(s);
    for (size_t i = 0; i < s->bundles.n; i++) {
        free(s->bundles.v[i].path);
        free(s->bundles.v[i].bucket);
    }
    drop_notes(s);
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

static void add_once(sketching_texts *list, const char *text)
{
    char *copy;

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], text) == 0)
            return;
    copy = strdup(text);
    if (copy && !etch_array_push(list, copy))
        free(copy);
}

static void note(struct sketching *s, const char *text)
{
    add_once(&s->notes, text);
}

void sketching_note(struct sketching *s, const char *text)
{
    add_once(&s->lasting, text);
}

/* ---- Taking bundles in ---- */

/* The statements that can have given a recording's exit status; NULL where it ended otherwise, or nothing can be said.
 */
static const Etch__Slice *exits_of(struct sketching *s, const struct etch_recording *recording)
{
    uint32_t status = recording->outcome && recording->outcome->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS
                          ? recording->outcome->exit_status
                          : 0;
    struct sketching_exits exits = {.status = status};
    struct etch_error ignored; /* slicing says it again */

    if (!status || sketching_open(s, &ignored) < 0)
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
static const Etch__Slice *layout_of(struct sketching *s)
{
    struct etch_error ignored; /* slicing says it again */

    if (!s->layout && sketching_open(s, &ignored) == 0)
        s->layout = etch_model_message(s->model);
    return s->layout;
}

/* How a failing run ended, without a slice. */
static int find_bucket(struct sketching *s, struct sketching_bundle *b, struct etch_recording *recording,
                       struct etch_error *err)
{
    struct etch_run_options options = {
        .verdict = b->verdict, .build_id = &s->build_id, .exits = exits_of(s, recording), .layout = layout_of(s)};
    struct etch_names names = {0};
    struct etch_run *run;
    int status = etch_run_build(&run, &names, recording, &options, err);

    if (status == 0) {
        b->failing = run->failing;
        b->unplaced = run->failing && run->failing_place == ETCH_NOWHERE;
        b->bucket = run->bucket ? strdup(run->bucket) : NULL;
        if (b->failing && !b->bucket)
            status = out_of_memory(err);
    }
    etch_run_free(run);
    etch_names_release(&names);
    return status;
}

/* A recording that was cut may lack the failure: the run did not pass for that. */
static bool is_unended(const struct etch_recording *r, const char *verdict)
{
    return !verdict && (r->cut || r->damaged) && !r->failure && !r->outcome;
}

int sketching_open(struct sketching *s, struct etch_error *err)
{
    if (s->model)
        return 0;
    if (etch_model_open(&s->model, s->program, (const char *const *)s->libraries.v, s->libraries.n, err) < 0)
        return -1;
    for (size_t i = 0; etch_model_note(s->model, i); i++)
        sketching_note(s, etch_model_note(s->model, i));
    return 0;
}

static void drop_model(struct sketching *s)
{
    for (size_t i = 0; i < s->exits.n; i++)
        etch__slice__free_unpacked(s->exits.v[i].statements, NULL);
    s->exits.n = 0;
    if (s->layout)
        etch__slice__free_unpacked(s->layout, NULL);
    s->layout = NULL;
    source_text_free(s->source); /* it asks the model */
    s->source = NULL;
    etch_model_free(s->model);
    s->model = NULL;
}

static bool has_library(const struct sketching *s, const char *path)
{
    for (size_t i = 0; i < s->libraries.n; i++)
        if (strcmp(s->libraries.v[i], path) == 0)
            return true;
    return false;
}

static void note_other_build(struct sketching *s, const char *path)
{
    char text[512];

    snprintf(text, sizeof(text), "%.300s is not the one that ran, or cannot be read: the slice does not go through it",
             path);
    sketching_note(s, text);
}

/* Libraries that the program loads by itself are seen only when it runs. The model is made anew with each that comes.
 */
static int add_libraries(struct sketching *s, const struct etch_recording *recording, struct etch_error *err)
{
    size_t before = s->libraries.n;
    struct etch_error ignored; /* slicing says it again */

    if (sketching_open(s, &ignored) < 0)
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
            return out_of_memory(err);
        }
    }
    if (s->libraries.n == before)
        return 0;
    drop_runs(s);
    drop_model(s);
    return sketching_open(s, err);
}

int sketching_add(struct sketching *s, const char *path, const char *verdict, bool tracked, struct etch_error *err)
{
    struct sketching_bundle b = {.verdict = verdict, .tracked = tracked};
    struct etch_recording *recording;
    bool hang, foreign = false, unended = false;
    int status = 0;

    if (!s->elf.build_id_size && etch_elf_read(&s->elf, s->program, err) < 0)
        return -1;
    s->build_id = (ProtobufCBinaryData){s->elf.build_id_size, s->elf.build_id};
    if (etch_recording_open(&recording, path, err) < 0)
        return -1;
    b.key = recording->program ? recording->program->start_unix_ns : 0;
    b.threaded = recording->threads.n > 1;
    b.failing = verdict ? strcmp(verdict, "pass") != 0 : etch_recording_failed(recording, &hang);
    b.path = strdup(path);
    if (!b.path)
        status = out_of_memory(err);
    else if (!recording->program && !s->lenient)
        status = etch_error_set(err, "%s does not say which program ran", path);
    else if (!recording->program || !etch_recording_runs(recording, &s->build_id))
        foreign = true; /* of another build, or ended before the program began */
    else if (is_unended(recording, verdict))
        unended = true;
    else if (b.failing && (status = add_libraries(s, recording, err)) == 0)
        status = find_bucket(s, &b, recording, err);
    etch_recording_free(recording);
    s->foreign += foreign;
    s->unended += unended;
    if (status == 0 && !foreign && !unended && etch_array_push(&s->bundles, b))
        return 0;
    free(b.path);
    free(b.bucket);
    return status < 0 ? -1 : foreign || unended ? 0 : out_of_memory(err);
}

static int by_key(const void *x, const void *y)
{
    const struct sketching_bundle *a = x, *b = y;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return strcmp(a->path, b->path);
}

void sketching_drop_last(struct sketching *s)
{
    struct sketching_bundle *b = &s->bundles.v[--s->bundles.n];

    etch_run_free(b->run);
    free(b->path);
    free(b->bucket);
}

/* ---- Which failure ---- */

/* Failures that are taken for one bug: they failed at the same statement with the same callers. */
struct failure {
    const struct sketching_bundle *first;
    size_t runs;
};

static int by_runs(const void *x, const void *y)
{
    const struct failure *a = x, *b = y;

    if (a->runs != b->runs)
        return a->runs > b->runs ? -1 : 1;
    return strcmp(a->first->bucket, b->first->bucket);
}

/* Each failure once, the commonest first. Returns how many; `list` has room for one per bundle. */
static size_t list_failures(const struct sketching *s, struct failure *list)
{
    size_t n = 0, k;

    for (size_t i = 0; i < s->bundles.n; i++) {
        const struct sketching_bundle *b = &s->bundles.v[i];

        if (!b->failing || b->unplaced)
            continue;
        for (k = 0; k < n && strcmp(list[k].first->bucket, b->bucket) != 0; k++)
            ;
        if (k == n)
            list[n++] = (struct failure){b, 0};
        list[k].runs++;
    }
    if (n)
        qsort(list, n, sizeof(*list), by_runs);
    return n;
}

/* The failure in question: the commonest, or the commonest of those that have the name asked for. */
static int choose_failure(struct sketching *s, const struct sketching_bundle **chosen, struct etch_error *err)
{
    struct failure *list = calloc(s->bundles.n + 1, sizeof(*list));
    size_t n = list ? list_failures(s, list) : 0, i = 0;
    const char *known = n && list[0].first ? list[0].first->bucket : "";

    while (s->bug && i < n && !strstr(list[i].first->bucket, s->bug))
        i++;
    if (i == n && s->lenient)
        i = 0;
    *chosen = i < n ? list[i].first : NULL;
    if (n && !*chosen) {
        etch_error_set(err, "no run failed at '%s'", s->bug);
        etch_error_advise(err, "a part of: %.300s", known);
    }
    free(list);
    return !list ? out_of_memory(err) : n && !*chosen ? -1 : 0;
}

static void note_failures(struct sketching *s)
{
    struct failure *list = calloc(s->bundles.n + 1, sizeof(*list));
    size_t n = list ? list_failures(s, list) : 0;
    char text[2048];

    for (size_t i = 0; i < n; i++) {
        const char *name = list[i].first->bucket, *place = strstr(name, ", ");

        if (strcmp(name, s->sliced) == 0)
            continue;
        place = place ? place + 2 : name;
        snprintf(text, sizeof(text), "another failure, in %zu run%s: %.1200s (--bug '%.*s' shows it)", list[i].runs,
                 list[i].runs == 1 ? "" : "s", name, (int)strcspn(place, "<,") - (strchr(place, '<') ? 1 : 0), place);
        note(s, text);
    }
    free(list);
}

static void note_left_out(struct sketching *s)
{
    char text[200];

    snprintf(text, sizeof(text), "%zu recording%s of another build of the program, or of another program: left out",
             s->foreign, s->foreign == 1 ? " is" : "s are");
    if (s->foreign)
        note(s, text);
    snprintf(text, sizeof(text), "%zu recording%s before the run did, and whether that failed is not known: left out",
             s->unended, s->unended == 1 ? " ends" : "s end");
    if (s->unended)
        note(s, text);
}

/* ---- The slice ---- */

static int slice_from(struct sketching *s, const struct sketching_bundle *b, struct etch_error *err)
{
    struct etch_run_options options = {.verdict = b->verdict, .build_id = &s->build_id};
    static const struct etch_slice_options slice_options = {0};
    struct etch_criterion *criterion = NULL;
    struct etch_recording *recording;
    struct etch_names names = {0};
    struct etch_run *run = NULL;
    int status = etch_recording_open(&recording, b->path, err);

    if (status < 0)
        return -1;
    status = sketching_open(s, err);
    options.exits = exits_of(s, recording);
    options.layout = layout_of(s);
    if (status == 0)
        status = etch_run_build(&run, &names, recording, &options, err);
    if (status == 0)
        status = etch_criterion_failure(&criterion, s->model, run->failure, recording->program, recording->images.v,
                                        recording->images.n, err);
    if (status == 0)
        status = etch_slice_make(&s->slicing, s->model, criterion, &slice_options, err);
    if (status == 0 && (!(s->slice = etch_slice_message(s->slicing)) || !(s->sliced = strdup(b->bucket))))
        status = out_of_memory(err);
    etch_criterion_free(criterion);
    etch_run_free(run);
    etch_names_release(&names);
    etch_recording_free(recording);
    return status;
}

/* A failure has one name, found when its bundle was taken in: functions may be called otherwise in the slice. */
static int keep_bucket(const struct sketching_bundle *b, struct etch_error *err)
{
    char *bucket = b->run->failing && b->bucket ? strdup(b->bucket) : NULL;

    if (!b->run->failing)
        return 0;
    if (!bucket)
        return out_of_memory(err);
    free(b->run->bucket);
    b->run->bucket = bucket;
    return 0;
}

static int make_run(struct sketching *s, struct sketching_bundle *b, struct etch_error *err)
{
    struct etch_run_options options = {.slice = s->slice, .verdict = b->verdict, .build_id = &s->build_id};
    struct etch_recording *recording;
    int status = etch_recording_open(&recording, b->path, err);

    if (status == 0) {
        options.exits = exits_of(s, recording);
        status = etch_run_build(&b->run, &s->names, recording, &options, err);
        etch_recording_free(recording);
    }
    return status < 0 ? -1 : keep_bucket(b, err);
}

/* Why there is nothing to sketch. */
static int say_no_failure(const struct sketching *s, struct etch_error *err)
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

int sketching_prepare(struct sketching *s, struct etch_error *err)
{
    const struct sketching_bundle *failure;

    if (s->bundles.n)
        qsort(s->bundles.v, s->bundles.n, sizeof(*s->bundles.v), by_key);
    if (choose_failure(s, &failure, err) < 0)
        return -1;
    if (!failure)
        return say_no_failure(s, err);
    if (!s->sliced || strcmp(s->sliced, failure->bucket) != 0) {
        drop_runs(s);
        if (slice_from(s, failure, err) < 0)
            return -1;
        if (etch_names_slice(&s->names, s->slice) < 0)
            return out_of_memory(err);
    }
    for (size_t i = 0; i < s->bundles.n; i++)
        if (!s->bundles.v[i].run && make_run(s, &s->bundles.v[i], err) < 0)
            return -1;
    return 0;
}

int sketching_write_plan(const char *path, const Etch__Plan *plan, struct etch_error *err)
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
    etch_bundle_writer_free(writer);
    return status;
}

bool sketching_is_threaded(const struct sketching *s)
{
    for (size_t i = 0; i < s->bundles.n; i++)
        if (s->bundles.v[i].failing && s->bundles.v[i].run && s->bundles.v[i].run->threads.n > 1)
            return true;
    return false;
}

bool sketching_hangs(const struct sketching *s)
{
    return s->sliced && strncmp(s->sliced, "hang", 4) == 0;
}

/* ---- The sketch ---- */

/* Why values that the failing statement uses are not shown. */
static void note_unmapped(struct sketching *s)
{
    for (size_t i = 0; i < s->slice->n_statements && s->slice->statements[i]->distance == 0; i++) {
        const Etch__Statement *statement = s->slice->statements[i];

        for (size_t k = 0; k < statement->n_operands && k < 3; k++) {
            const Etch__Operand *o = statement->operands[k];
            char text[512];

            if (o->address || !o->unmapped || !o->unmapped[0])
                continue;
            snprintf(text, sizeof(text), "the value of %.200s at line %u is not known: the compiler has it %.100s",
                     o->name, statement->place->line, o->unmapped);
            note(s, text);
        }
    }
}

static const char *checksum_of(void *context, const char *file)
{
    return etch_model_checksum(context, file);
}

static bool add_note(Etch__Sketch *sketch, const char *text)
{
    char **bigger = realloc(sketch->notes, (sketch->n_notes + 1) * sizeof(*bigger));

    if (!bigger)
        return false;
    sketch->notes = bigger;
    sketch->notes[sketch->n_notes] = strdup(text);
    return sketch->notes[sketch->n_notes] && ++sketch->n_notes;
}

static bool is_noted(const Etch__Sketch *sketch, size_t step)
{
    for (size_t i = 0; i < step; i++)
        if (strcmp(sketch->steps[i]->place->file, sketch->steps[step]->place->file) == 0)
            return true;
    return false;
}

/* Of the files whose lines are shown: which are not as they were compiled. */
static bool note_sources(struct sketching *s, Etch__Sketch *sketch)
{
    char text[4400];
    bool good = true;

    for (size_t i = 0; i < sketch->n_steps && good; i++) {
        const char *file = sketch->steps[i]->place->file;
        enum source_text_state state = source_text_state(s->source, file);

        if (state == SOURCE_AS_COMPILED || is_noted(sketch, i))
            continue;
        snprintf(text, sizeof(text),
                 state == SOURCE_MISSING   ? "%s cannot be read: its lines are left blank"
                 : state == SOURCE_CHANGED ? "%s has changed since it was compiled: its lines are not what ran"
                                           : "%s is newer than the program: its lines may not be what ran",
                 file);
        good = add_note(sketch, text);
    }
    return good;
}

Etch__Sketch *sketching_compose(struct sketching *s, uint32_t round, uint32_t sigma, bool all, struct etch_error *err)
{
    struct etch_compose_options options = {
        .slice = s->slice, .round = round, .sigma = sigma, .bucket = s->sliced, .all = all, .source = source_text_line};
    struct etch_run **runs = calloc(s->bundles.n + 1, sizeof(struct etch_run *));
    Etch__Sketch *sketch = NULL;

    if (!s->source)
        s->source = source_text_new(s->program, checksum_of, s->model);
    if (runs && s->source) {
        for (size_t i = 0; i < s->bundles.n; i++)
            runs[i] = s->bundles.v[i].run;
        drop_notes(s);
        for (size_t i = 0; i < s->lasting.n; i++)
            note(s, s->lasting.v[i]);
        note_failures(s);
        note_left_out(s);
        note_unmapped(s);
        options.source_context = s->source;
        options.notes = s->notes.v;
        options.n_notes = s->notes.n;
        sketch = etch_compose(&s->names, runs, s->bundles.n, &options, err);
        if (sketch && !note_sources(s, sketch)) {
            etch__sketch__free_unpacked(sketch, NULL);
            sketch = NULL;
            out_of_memory(err);
        }
    } else {
        out_of_memory(err);
    }
    free(runs);
    return sketch;
}

/* ---- Ways out ---- */

static int write_file(const char *path, const char *text, size_t size, struct etch_error *err)
{
    FILE *out;

    if (!text)
        return out_of_memory(err);
    if (strcmp(path, "-") == 0)
        return fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0
                   ? 0
                   : etch_error_set_errno(err, errno, "cannot write the output");
    out = fopen(path, "we");
    if (!out)
        return etch_error_set_errno(err, errno, "cannot write %s", path);
    fwrite(text, 1, size, out);
    if (fclose(out))
        return etch_error_set_errno(err, errno, "cannot write %s", path);
    return 0;
}

static void fit_terminal(struct etch_render_terminal *options)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;

    setlocale(LC_CTYPE, "");
    options->width = 120;
    if (isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col)
        options->width = size.ws_col;
    else if (columns && atoi(columns) > 0)
        options->width = (unsigned)atoi(columns);
    options->colour = isatty(1) && !getenv("NO_COLOR");
    options->unicode = isatty(1) && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static bool is_stdout(const struct sketching_output *o)
{
    return (o->html && strcmp(o->html, "-") == 0) || (o->json && strcmp(o->json, "-") == 0) ||
           (o->sarif && strcmp(o->sarif, "-") == 0);
}

int sketching_write(struct sketching *s, const Etch__Sketch *sketch, const struct sketching_output *output,
                    struct etch_error *err)
{
    struct etch_render_html html = {source_text_line, s->source};
    struct etch_render_terminal terminal = {.all = output->all};
    char root[4096];
    size_t size = 0;
    char *text;
    int status = 0;

    if (!is_stdout(output)) {
        fit_terminal(&terminal);
        text = etch_render_terminal(sketch, &terminal, &size);
        status = write_file("-", text, size, err);
        free(text);
    }
    if (status == 0 && output->html) {
        text = etch_render_html(sketch, &html, &size);
        status = write_file(output->html, text, size, err);
        free(text);
    }
    if (status == 0 && output->json) {
        text = etch_render_json(sketch, &size);
        status = write_file(output->json, text, size, err);
        free(text);
    }
    if (status == 0 && output->sarif) {
        text = etch_render_sarif(sketch, getcwd(root, sizeof(root)), &size);
        status = write_file(output->sarif, text, size, err);
        free(text);
    }
    return status;
}

bool sketching_take_option(struct sketching_output *output, int option, const char *value)
{
    switch (option) {
    case 'H':
        output->html = value;
        return true;
    case 'j':
        output->json = value;
        return true;
    case 's':
        output->sarif = value;
        return true;
    case 'a':
        output->all = true;
        return true;
    default:
        return false;
    }
}
