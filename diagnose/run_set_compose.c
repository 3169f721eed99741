/* SPDX-License-Identifier: MIT */
/* From a set of runs to a sketch, with the notes that its reader needs. */
#include "base/assert.h"
#include "diagnose/run_set_model.h"
#include "diagnose/source_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note_left_out(struct etch_run_set *s)
{
    char text[200];

    snprintf(text, sizeof(text), "%zu recording%s of another build of the program, or of another program: left out",
             s->foreign, s->foreign == 1 ? " is" : "s are");
    if (s->foreign)
        etch_run_set_note_now(s, text);
    snprintf(text, sizeof(text), "%zu recording%s before the run did, and whether that failed is not known: left out",
             s->unended, s->unended == 1 ? " ends" : "s end");
    if (s->unended)
        etch_run_set_note_now(s, text);
}

/* Why values that the failing statement uses are not shown. */
static void note_unmapped(struct etch_run_set *s)
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
            etch_run_set_note_now(s, text);
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

/* Notes the shown source files that are not as they were compiled. */
static bool note_sources(struct etch_run_set *s, Etch__Sketch *sketch)
{
    char text[4400];
    bool good = true;

    for (size_t i = 0; i < sketch->n_steps && good; i++) {
        const char *file = sketch->steps[i]->place->file;
        enum etch_source_text_state state = etch_source_text_state(s->source, file);

        if (state == ETCH_SOURCE_AS_COMPILED || is_noted(sketch, i))
            continue;
        snprintf(text, sizeof(text),
                 state == ETCH_SOURCE_MISSING ? "%s cannot be read: its lines are left blank"
                 : state == ETCH_SOURCE_OUTSIDE
                     ? "%s lies outside of the source folders: its lines are left blank (try: "
                       "--source-root, with the folder of the sources)"
                 : state == ETCH_SOURCE_CHANGED ? "%s has changed since it was compiled: its lines are not what ran"
                                                : "%s is newer than the program: its lines may not be what ran",
                 file);
        good = add_note(sketch, text);
    }
    return good;
}

static struct etch_run **list_runs(const struct etch_run_set *s)
{
    struct etch_run **runs = calloc(s->bundles.n + 1, sizeof(struct etch_run *));

    for (size_t i = 0; runs && i < s->bundles.n; i++) {
        runs[i] = s->bundles.v[i].run;
        runs[i]->input = s->bundles.v[i].input ? s->bundles.v[i].input : s->input;
    }
    return runs;
}

Etch__Sketch *etch_run_set_compose(struct etch_run_set *s, uint32_t round, uint32_t sigma, bool all,
                                   struct etch_error *err)
{
    struct etch_compose_options options = {.slice = s->slice,
                                           .round = round,
                                           .sigma = sigma,
                                           .bucket = s->sliced,
                                           .all = all,
                                           .source = etch_source_text_line,
                                           .experiment = s->experiment};
    struct etch_run **runs = list_runs(s);
    Etch__Sketch *sketch = NULL;

    ETCH_ASSERT(s->slice && s->sliced); /* etch_run_set_prepare() made them */
    if (!s->source)
        s->source = etch_source_text_new(s->program, checksum_of, s->model);
    if (runs && s->source) {
        etch_run_set_drop_notes(s);
        for (size_t i = 0; i < s->lasting.n; i++)
            etch_run_set_note_now(s, s->lasting.v[i]);
        etch_run_set_note_failures(s);
        note_left_out(s);
        note_unmapped(s);
        options.source_context = s->source;
        options.notes = s->notes.v;
        options.n_notes = s->notes.n;
        s->counts.ranked++;
        s->counts.laid_out++;
        sketch = etch_compose(&s->names, runs, s->bundles.n, &options, err);
        if (sketch && !note_sources(s, sketch)) {
            etch__sketch__free_unpacked(sketch, NULL);
            sketch = NULL;
            etch_error_no_memory(err);
        }
    } else {
        etch_error_no_memory(err);
    }
    free(runs);
    return sketch;
}

/* ---- The ranking alone ---- */

static bool is_same_line(const struct etch_names *names, uint32_t a, uint32_t b)
{
    const struct etch_line_place *x = &names->places.v[a], *y = &names->places.v[b];

    return x->line == y->line && strcmp(x->file, y->file) == 0;
}

/* True if the best predictor is only about how the program reported the failure: a branch, or a statement that ran in
 * failing runs only. */
static bool is_said(const struct etch_names *names, const struct etch_predictors *ranked)
{
    const struct etch_predictor *top = &ranked->all.v[0];

    if (top->kind == ETCH_PREDICTOR_BRANCH || top->kind == ETCH_PREDICTOR_EXECUTED)
        return true;
    for (size_t i = 0; i < ranked->all.n && i < ETCH_SHOWN_PREDICTORS && ranked->all.v[i].f > 0; i++) {
        const struct etch_predictor *p = &ranked->all.v[i];
        bool ran = p->kind == ETCH_PREDICTOR_EXECUTED && !p->negated && p->f >= ETCH_STOP_STRONG;

        for (uint32_t k = 0; ran && k < top->n_places; k++)
            if (is_same_line(names, p->places[0], top->places[k]))
                return true;
    }
    return false;
}

static int take_best(const struct etch_names *names, const struct etch_predictors *ranked, struct etch_best *best)
{
    const struct etch_predictor *top = ranked->all.n && ranked->all.v[0].f > 0 ? &ranked->all.v[0] : NULL;
    char text[1024];

    *best = (struct etch_best){0};
    if (!top)
        return 0;
    etch_predictor_text(top, names, text, sizeof(text));
    best->text = strdup(text);
    best->f = top->f;
    best->failing_true = top->failing_true;
    best->passing = top->passing;
    best->is_value = top->kind == ETCH_PREDICTOR_VALUE;
    best->is_said = is_said(names, ranked);
    return best->text ? 0 : -1;
}

int etch_run_set_rank(struct etch_run_set *s, struct etch_best *best, struct etch_error *err)
{
    struct etch_run **runs = list_runs(s);
    struct etch_predictors ranked = {0};
    int status = runs ? etch_rank(&ranked, &s->names, runs, s->bundles.n, s->sliced, err) : etch_error_no_memory(err);

    ETCH_ASSERT(s->sliced);
    s->counts.ranked++;
    if (status == 0 && take_best(&s->names, &ranked, best) < 0)
        status = etch_error_no_memory(err);
    etch_predictors_release(&ranked);
    free(runs);
    return status;
}
