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

void sketching_release(struct sketching *s)
{
    drop_runs(s);
    for (size_t i = 0; i < s->bundles.n; i++) {
        free(s->bundles.v[i].path);
        free(s->bundles.v[i].bucket);
    }
    for (size_t i = 0; i < s->notes.n; i++)
        free(s->notes.v[i]);
    etch_array_free(&s->bundles);
    etch_array_free(&s->notes);
    etch_model_free(s->model);
    source_text_free(s->source);
    memset(s, 0, sizeof(*s));
}

static void note(struct sketching *s, const char *text)
{
    char *copy;

    for (size_t i = 0; i < s->notes.n; i++)
        if (strcmp(s->notes.v[i], text) == 0)
            return;
    copy = strdup(text);
    if (copy && !etch_array_push(&s->notes, copy))
        free(copy);
}

/* ---- Taking bundles in ---- */

/* How a failing run ended, without a slice. */
static int find_bucket(struct sketching_bundle *b, struct etch_recording *recording, struct etch_error *err)
{
    struct etch_run_options options = {.verdict = b->verdict};
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

int sketching_add(struct sketching *s, const char *path, const char *verdict, struct etch_error *err)
{
    struct sketching_bundle b = {.verdict = verdict};
    struct etch_recording *recording;
    bool hang;
    int status = 0;

    if (etch_recording_open(&recording, path, err) < 0)
        return -1;
    b.key = recording->program ? recording->program->start_unix_ns : 0;
    b.failing = verdict ? strcmp(verdict, "pass") != 0 : etch_recording_failed(recording, &hang);
    b.path = strdup(path);
    if (!b.path)
        status = out_of_memory(err);
    else if (!recording->program)
        status = etch_error_set(err, "%s does not say which program ran", path);
    else if (b.failing)
        status = find_bucket(&b, recording, err);
    etch_recording_free(recording);
    if (status == 0 && etch_array_push(&s->bundles, b))
        return 0;
    free(b.path);
    free(b.bucket);
    return status < 0 ? -1 : out_of_memory(err);
}

/* ---- The slice ---- */

static int by_key(const void *x, const void *y)
{
    const struct sketching_bundle *a = x, *b = y;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return strcmp(a->path, b->path);
}

static const struct sketching_bundle *commonest(const struct sketching *s)
{
    const struct sketching_bundle *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < s->bundles.n; i++) {
        const struct sketching_bundle *b = &s->bundles.v[i];
        size_t n = 0;

        for (size_t k = 0; b->failing && !b->unplaced && k < s->bundles.n; k++)
            n += s->bundles.v[k].failing && strcmp(s->bundles.v[k].bucket, b->bucket) == 0;
        if (n > most || (n && n == most && strcmp(b->bucket, best->bucket) < 0)) {
            most = n;
            best = b;
        }
    }
    return best;
}

static int slice_from(struct sketching *s, const struct sketching_bundle *b, struct etch_error *err)
{
    struct etch_run_options options = {.verdict = b->verdict};
    static const struct etch_slice_options slice_options = {0};
    struct etch_criterion *criterion = NULL;
    struct etch_recording *recording;
    struct etch_names names = {0};
    struct etch_run *run = NULL;
    int status = etch_recording_open(&recording, b->path, err);

    if (status < 0)
        return -1;
    if (!s->model)
        status = etch_model_open(&s->model, s->program, err);
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

static int make_run(struct sketching *s, struct sketching_bundle *b, struct etch_error *err)
{
    struct etch_run_options options = {.slice = s->slice, .verdict = b->verdict};
    struct etch_recording *recording;
    int status = etch_recording_open(&recording, b->path, err);

    if (status == 0) {
        status = etch_run_build(&b->run, &s->names, recording, &options, err);
        etch_recording_free(recording);
    }
    return status;
}

int sketching_prepare(struct sketching *s, struct etch_error *err)
{
    const struct sketching_bundle *failure;

    if (s->bundles.n)
        qsort(s->bundles.v, s->bundles.n, sizeof(*s->bundles.v), by_key);
    failure = commonest(s);
    for (size_t i = 0; !failure && i < s->bundles.n; i++) {
        if (s->bundles.v[i].unplaced) {
            etch_error_set(err, "no failing run failed at a known place of %s", s->program);
            return etch_error_advise(err, "build it with etch cc -g; recordings of the failing runs that are whole");
        }
    }
    if (!failure) {
        etch_error_set(err, "none of the %zu runs failed", s->bundles.n);
        return etch_error_advise(err, "bundles of failing runs too, or etch diagnose, which runs until it fails");
    }
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

static void note_changes(struct sketching *s)
{
    char text[512];

    for (size_t i = 0; i < s->slice->n_statements; i++)
        source_text_line(s->source, s->slice->statements[i]->place->file, 1);
    for (unsigned i = 0; source_text_changed(s->source, i); i++) {
        snprintf(text, sizeof(text), "%s has changed since the program was built: its lines may not be what ran",
                 source_text_changed(s->source, i));
        note(s, text);
    }
}

Etch__Sketch *sketching_compose(struct sketching *s, uint32_t round, uint32_t sigma, bool all, struct etch_error *err)
{
    struct etch_compose_options options = {
        .slice = s->slice, .round = round, .sigma = sigma, .all = all, .source = source_text_line};
    struct etch_run **runs = calloc(s->bundles.n + 1, sizeof(struct etch_run *));
    Etch__Sketch *sketch = NULL;

    if (!s->source)
        s->source = source_text_new(s->program);
    if (runs && s->source) {
        for (size_t i = 0; i < s->bundles.n; i++)
            runs[i] = s->bundles.v[i].run;
        note_changes(s);
        options.source_context = s->source;
        options.notes = s->notes.v;
        options.n_notes = s->notes.n;
        sketch = etch_compose(&s->names, runs, s->bundles.n, &options, err);
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
    options->unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
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
