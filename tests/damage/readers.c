/* SPDX-License-Identifier: MIT */
/* Whatever reads bundles; see readers.h. */
#include "tests/damage/readers.h"

#include "decoder/recording.h"
#include "decoder/steps.h"
#include "diagnose/run_set.h"
#include "diagnose/source_text.h"
#include "proto/contents.h"
#include "sketch/render.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A program's bitcode takes longer to read than a bundle: it is kept. */
struct known_program {
    char *path;
    struct etch_model *model;
};

struct readers {
    ETCH_ARRAY(struct known_program) programs;
};

struct readers *readers_new(void)
{
    return calloc(1, sizeof(struct readers));
}

void readers_free(struct readers *readers)
{
    for (size_t i = 0; readers && i < readers->programs.n; i++) {
        free(readers->programs.v[i].path);
        etch_model_free(readers->programs.v[i].model);
    }
    if (readers)
        etch_array_free(&readers->programs);
    free(readers);
}

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "wrong: %s\n", what);
    abort();
}

static void refuse(struct readers_result *result, const struct etch_error *err)
{
    require(err->what[0], "a refusal without words");
    snprintf(result->why, sizeof(result->why), "%s", err->what);
}

/* ---- info and decode ---- */

static void take_contents(const char *path, struct readers_result *result)
{
    struct etch_contents contents;
    struct etch_bundle_reader *reader;
    struct etch_error err = {0};

    if (etch_bundle_open(&reader, path, &err) < 0) {
        refuse(result, &err);
        return;
    }
    if (etch_contents_read(&contents, reader, &err) < 0)
        refuse(result, &err);
    etch_contents_release(&contents);
    etch_bundle_reader_free(reader);
}

static int count_step(void *context, const struct etch_step *step)
{
    (void)step;
    ++*(uint64_t *)context;
    return 0;
}

static void take_steps(const char *path, struct readers_result *result)
{
    struct etch_steps_options options = {.jobs = 1};
    struct etch_recording *recording;
    struct etch_steps_count count;
    struct etch_error err = {0};

    if (etch_recording_open(&recording, path, &err) < 0) {
        refuse(result, &err);
        return;
    }
    if (etch_steps(recording, &options, count_step, &result->steps, &count, &err) < 0)
        refuse(result, &err);
    etch_recording_free(recording);
}

/* ---- sketch ---- */

static struct known_program *find_program(struct readers *readers, const char *path)
{
    struct known_program program = {0};
    struct etch_error err;

    for (size_t i = 0; i < readers->programs.n; i++)
        if (strcmp(readers->programs.v[i].path, path) == 0)
            return readers->programs.v[i].model ||
                           etch_model_open(&readers->programs.v[i].model, path, NULL, 0, &err) == 0
                       ? &readers->programs.v[i]
                       : NULL;
    if (etch_model_open(&program.model, path, NULL, 0, &err) < 0)
        return NULL;
    program.path = strdup(path);
    require(program.path && etch_array_push(&readers->programs, program), "memory for a program");
    return &readers->programs.v[readers->programs.n - 1];
}

static void draw(struct etch_run_set *s, const Etch__Sketch *sketch)
{
    struct etch_render_html html = {etch_source_text_line, s->source};
    struct etch_render_terminal terminal = {.width = 120, .unicode = true, .colour = true, .all = true};
    size_t size = 0;
    char *text = etch_render_terminal(sketch, &terminal, &size);
    json_t *json;

    require(text && size && strlen(text) == size, "the picture");
    free(text);
    text = etch_render_html(sketch, &html, &size);
    require(text && size && strlen(text) == size, "the HTML");
    free(text);
    text = etch_render_json(sketch, &size);
    json = text ? json_loadb(text, size, 0, NULL) : NULL;
    require(json, "the JSON");
    json_decref(json);
    free(text);
    text = etch_render_sarif(sketch, "/src", &size);
    json = text ? json_loadb(text, size, 0, NULL) : NULL;
    require(json, "the SARIF");
    json_decref(json);
    free(text);
}

static void take_sketch(struct readers *readers, const char *program, char paths[][64], size_t n,
                        struct readers_result *result)
{
    struct known_program *known = find_program(readers, program);
    struct etch_run_set s = {.program = program, .lenient = true};
    struct etch_error err = {0};
    Etch__Sketch *sketch = NULL;

    require(known, "the program cannot be read");
    s.model = known->model;
    for (size_t i = 0; i < n; i++) {
        bool taken = etch_run_set_add(&s, paths[i], ETCH_VERDICT_AS_RECORDED, false, &err) == 0;

        result->taken += taken;
        result->refused += !taken;
        if (!taken)
            refuse(result, &err);
    }
    if (etch_run_set_prepare(&s, &err) == 0)
        sketch = etch_run_set_compose(&s, 0, 0, true, &err);
    if (sketch)
        draw(&s, sketch);
    else
        refuse(result, &err);
    result->sketches += sketch != NULL;
    result->without_sketch += !sketch;
    if (sketch)
        etch__sketch__free_unpacked(sketch, NULL);
    if (s.model == known->model)
        s.model = NULL;
    else
        known->model = NULL; /* it was made anew, for libraries that a bundle speaks of */
    etch_run_set_release(&s);
}

void readers_take(struct readers *readers, const struct input *input, struct readers_result *result)
{
    char paths[INPUT_FILES][64];
    int fds[INPUT_FILES] = {0};

    for (size_t i = 0; i < input->n; i++) {
        const struct input_file *file = &input->files[i];

        fds[i] = memfd_create("bundle", MFD_CLOEXEC);
        require(fds[i] >= 0 && write(fds[i], file->bytes, file->size) == (ssize_t)file->size, "room for a bundle");
        snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
    }
    if (input->n) {
        take_contents(paths[0], result);
        take_steps(paths[0], result);
    }
    take_sketch(readers, input->program, paths, input->n, result);
    for (size_t i = 0; i < input->n; i++)
        close(fds[i]);
}
