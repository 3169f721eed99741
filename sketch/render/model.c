/* SPDX-License-Identifier: MIT */
/* The common part of all renderers; see model.h. */
#include "sketch/render/model.h"
#include "base/function_name.h"
#include "base/path.h"
#include "proto/ledger.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *etch_render_string(const char *text)
{
    return text ? text : "";
}

const Etch__Place *etch_render_place(const Etch__Place *place)
{
    static const Etch__Place nowhere = ETCH__PLACE__INIT;

    return place ? place : &nowhere;
}

const char *etch_render_basename(const char *path)
{
    return etch_path_name(etch_render_string(path));
}

const char *etch_render_function(const Etch__Place *place, char *text, size_t size)
{
    return etch_function_short(etch_render_string(place->function), text, size);
}

/* ---- Rows and columns ---- */

struct place_in_order {
    size_t step;
    uint32_t rank, thread;
};

static int compare_places(const void *a, const void *b)
{
    const struct place_in_order *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static void cut_into_rows(struct etch_render_model *m)
{
    Etch__SketchStep **steps = m->sketch->steps;

    for (size_t i = 0; i < m->n_steps; i++) {
        const Etch__SketchStep *step = steps[m->order[i]];
        struct etch_render_row *row = m->n_rows ? &m->rows[m->n_rows - 1] : NULL;

        if (row && steps[m->order[row->first]]->rank == step->rank) {
            row->n++;
            row->unordered |= steps[m->order[row->first]]->thread != step->thread;
        } else {
            m->rows[m->n_rows++] = (struct etch_render_row){.first = i, .n = 1};
        }
        m->row_of[m->order[i]] = m->n_rows - 1;
    }
}

static int make_rows(struct etch_render_model *m)
{
    struct place_in_order *places = calloc(m->n_steps + 1, sizeof(*places));

    m->order = calloc(m->n_steps + 1, sizeof(*m->order));
    m->rows = calloc(m->n_steps + 1, sizeof(*m->rows));
    m->row_of = calloc(m->n_steps + 1, sizeof(*m->row_of));
    if (!places || !m->order || !m->rows || !m->row_of) {
        free(places);
        return -1;
    }
    for (size_t i = 0; i < m->n_steps; i++) {
        const Etch__SketchStep *step = m->sketch->steps[i];

        places[i] = (struct place_in_order){.step = i, .rank = step->rank, .thread = step->thread};
    }
    qsort(places, m->n_steps, sizeof(*places), compare_places);
    for (size_t i = 0; i < m->n_steps; i++)
        m->order[i] = places[i].step;
    free(places);
    cut_into_rows(m);
    return 0;
}

static int make_columns(struct etch_render_model *m)
{
    const Etch__Sketch *s = m->sketch;
    bool *used = calloc(s->n_threads + 1, sizeof(*used));

    m->columns = calloc(s->n_threads + 1, sizeof(*m->columns));
    if (!used || !m->columns) {
        free(used);
        return -1;
    }
    for (size_t i = 0; i < s->n_steps; i++)
        if (s->steps[i]->thread < s->n_threads)
            used[s->steps[i]->thread] = true;
    for (size_t i = 0; i < s->n_threads; i++)
        if (used[i])
            m->columns[m->n_columns++] = i;
    free(used);
    return 0;
}

static bool kind_is_shown(const struct etch_render_model *m, const char *kind)
{
    for (size_t i = 0; i < m->n_shown; i++)
        if (!strcmp(etch_render_string(m->sketch->predictors[m->shown[i]]->kind), etch_render_string(kind)))
            return true;
    return false;
}

/* The predictor may be called a cause: its F, and the difference between how often it holds in failing and in passing
 * runs, are at least ETCH_RENDER_STRONG. Otherwise it is a hint. F alone does not tell: a predictor that holds in every
 * run has an F of 0.56 if half of the runs fail. */
static bool is_strong(const Etch__Predictor *p)
{
    double failing = p->failing ? (double)p->failing_true / p->failing : 0;
    double passing = p->passing ? (double)p->passing_true / p->passing : 1;

    if (p->experiment)
        return true;
    return p->f >= ETCH_RENDER_STRONG && failing - passing >= ETCH_RENDER_STRONG;
}

static int pick_predictors(struct etch_render_model *m, bool all)
{
    const Etch__Sketch *s = m->sketch;
    bool strong = etch_render_has_cause(s);
    size_t n = s->compared || strong ? s->n_predictors : 0;

    m->shown = calloc(n + 1, sizeof(*m->shown));
    if (!m->shown)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const Etch__Predictor *p = s->predictors[i];

        if (all || (!kind_is_shown(m, p->kind) && (!strong || is_strong(p))))
            m->shown[m->n_shown++] = i;
    }
    m->unshown = n - m->n_shown;
    return 0;
}

int etch_render_model_make(struct etch_render_model *model, const Etch__Sketch *sketch, bool all)
{
    *model = (struct etch_render_model){.sketch = sketch, .n_steps = sketch->n_steps};
    if (make_rows(model) == 0 && make_columns(model) == 0 && pick_predictors(model, all) == 0)
        return 0;
    etch_render_model_release(model);
    return -1;
}

void etch_render_model_release(struct etch_render_model *model)
{
    free(model->order);
    free(model->rows);
    free(model->row_of);
    free(model->columns);
    free(model->shown);
    *model = (struct etch_render_model){0};
}

size_t etch_render_column(const struct etch_render_model *model, size_t step)
{
    for (size_t i = 0; i < model->n_columns; i++)
        if (model->columns[i] == model->sketch->steps[step]->thread)
            return i;
    return SIZE_MAX;
}

bool etch_render_step_has_predictor(const Etch__SketchStep *step, size_t predictor)
{
    for (size_t i = 0; i < step->n_predictors; i++)
        if (step->predictors[i] == predictor)
            return true;
    return false;
}

bool etch_render_order_is_sound(const Etch__Sketch *sketch, const Etch__SketchOrder *order)
{
    return order->before < sketch->n_steps && order->after < sketch->n_steps && order->before != order->after;
}

/* ---- Words ---- */

bool etch_render_has_cause(const Etch__Sketch *sketch)
{
    return sketch->n_predictors > 0 && (sketch->compared || sketch->predictors[0]->experiment) &&
           is_strong(sketch->predictors[0]);
}

void etch_render_runs(const Etch__Sketch *s, char *text, size_t size)
{
    if (s->failing_runs == 0 && s->passing_runs > 0)
        snprintf(text, size, "no failure in %u run%s", s->passing_runs, s->passing_runs == 1 ? "" : "s");
    else if (s->failing_runs == 0)
        snprintf(text, size, "no runs");
    else if (!s->compared && s->failing_runs == 1 && s->passing_runs == 0)
        snprintf(text, size, "one failure, no comparison yet");
    else
        snprintf(text, size, "%u failing, %u passing run%s%s", s->failing_runs, s->passing_runs,
                 s->passing_runs == 1 ? "" : "s", s->compared ? "" : ", no comparison yet");
}

const char *etch_render_sureness(const Etch__Predictor *p)
{
    return !p->experiment ? "suspect" : p->experiment->proven ? "proven" : "necessary";
}

void etch_render_counts(const Etch__Predictor *p, char *text, size_t size)
{
    char unknown[40] = "", experiment[128] = "";

    if (p->unknown)
        snprintf(unknown, sizeof(unknown), ", unknown in %u", p->unknown);
    if (p->experiment)
        snprintf(experiment, sizeof(experiment), "%s: turned round %u of %u fail, alone %u of %u fail; ",
                 etch_render_sureness(p), p->experiment->turned_failed, p->experiment->turned,
                 p->experiment->alone_failed, p->experiment->alone);
    if (p->experiment && !p->failing && !p->passing) { /* found in the lab, and never compared */
        experiment[strlen(experiment) - 2] = '\0';
        snprintf(text, size, "%s", experiment);
        return;
    }
    snprintf(text, size, "%sin %u/%u failing, %u/%u passing%s", experiment, p->failing_true, p->failing,
             p->passing_true, p->passing, unknown);
}

void etch_render_headline(const Etch__Sketch *s, char *text, size_t size)
{
    char kind[64];

    if (etch_render_string(s->headline)[0])
        snprintf(text, size, "%s", s->headline);
    else if (!s->failure || s->failure->kind == ETCH__FAILURE_KIND__FAILURE_NONE)
        snprintf(text, size, "no failure");
    else if (s->failure->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL)
        snprintf(text, size, "signal %u", s->failure->signal);
    else {
        etch_render_enum(&etch__failure_kind__descriptor, (int)s->failure->kind, ' ', kind);
        snprintf(text, size, "%s", kind);
    }
}

void etch_render_value(const Etch__SketchValue *value, char text[24])
{
    uint64_t v = value->value;

    if (value->known_case != ETCH__SKETCH_VALUE__KNOWN_VALUE)
        snprintf(text, 24, "?");
    else if (v < 65536)
        snprintf(text, 24, "%" PRIu64, v);
    else if (v > UINT64_MAX - 65536)
        snprintf(text, 24, "-%" PRIu64, -v);
    else
        snprintf(text, 24, "0x%" PRIx64, v);
}

/* A number as the values of steps are shown. */
static void number_text(uint64_t number, char text[24])
{
    Etch__SketchValue v = ETCH__SKETCH_VALUE__INIT;

    v.known_case = ETCH__SKETCH_VALUE__KNOWN_VALUE;
    v.value = number;
    etch_render_value(&v, text);
}

const Etch__SketchPassingValue *etch_render_passing_of(const Etch__SketchStep *step, const Etch__SketchValue *value)
{
    for (size_t i = 0; step->passing && i < step->passing->n_values; i++)
        if (step->passing->values[i]->variable == value->variable && step->passing->values[i]->write == value->write)
            return step->passing->values[i];
    return NULL;
}

void etch_render_passing_value(const Etch__SketchPassingValue *seen, char *text, size_t size)
{
    char least[24], most[24];

    number_text(seen->least, least);
    number_text(seen->most, most);
    if (seen->distinct == 1)
        snprintf(text, size, "%s %s", seen->runs > 1 ? "always" : "once", least);
    else if (seen->least)
        snprintf(text, size, "never 0; %s to %s", least, most);
    else
        snprintf(text, size, "%s to %s", least, most);
}

void etch_render_enum(const ProtobufCEnumDescriptor *descriptor, int value, char space, char name[64])
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(descriptor, value);
    const char *tail = v ? strchr(v->name, '_') : NULL;
    size_t n = 0;

    for (tail = tail ? tail + 1 : "unknown"; *tail && n < 63; tail++)
        name[n++] = *tail == '_' ? space : (char)tolower((unsigned char)*tail);
    name[n] = '\0';
}

void etch_render_loss(const Etch__Loss *loss, char *text, size_t size)
{
    char much[48] = "", thread[32] = "";
    const char *detail = etch_render_string(loss->detail);

    if (loss->bytes)
        snprintf(much, sizeof(much), ", %" PRIu64 " bytes", loss->bytes);
    else if (loss->events)
        snprintf(much, sizeof(much), ", %" PRIu64 " events", loss->events);
    if (loss->tid)
        snprintf(thread, sizeof(thread), ", thread %u", loss->tid);
    snprintf(text, size, "%s%s%s%s%s", etch_loss_name(loss->cause), much, thread, detail[0] ? ": " : "", detail);
}

bool etch_render_has_loss(const Etch__Sketch *sketch)
{
    for (size_t i = 0; i < sketch->n_steps; i++)
        if (sketch->steps[i]->lost_before)
            return true;
    return sketch->n_losses > 0;
}

/* ---- Text from outside ---- */

void etch_render_put_rune(struct etch_text *out, uint32_t r)
{
    if (r < 0x80) {
        etch_text_char(out, (char)r);
    } else if (r < 0x800) {
        etch_text_char(out, (char)(0xc0 | r >> 6));
        etch_text_char(out, (char)(0x80 | (r & 0x3f)));
    } else if (r < 0x10000) {
        etch_text_char(out, (char)(0xe0 | r >> 12));
        etch_text_char(out, (char)(0x80 | (r >> 6 & 0x3f)));
        etch_text_char(out, (char)(0x80 | (r & 0x3f)));
    } else {
        etch_text_char(out, (char)(0xf0 | r >> 18));
        etch_text_char(out, (char)(0x80 | (r >> 12 & 0x3f)));
        etch_text_char(out, (char)(0x80 | (r >> 6 & 0x3f)));
        etch_text_char(out, (char)(0x80 | (r & 0x3f)));
    }
}
