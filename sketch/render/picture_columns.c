/* SPDX-License-Identifier: MIT */
/* The columns of a picture: how wide each is, and how a step, a label and a value look in it. */
#include "sketch/render/picture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned cells_of(struct picture *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static unsigned cells_of(struct picture *p, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return etch_canvas_measure(&p->canvas, text);
}

unsigned etch_picture_digits(size_t n)
{
    unsigned count = 1;

    for (; n >= 10; n /= 10)
        count++;
    return count;
}

void etch_picture_label(const Etch__Place *place, enum label label, char *text, size_t size)
{
    if (!place->line)
        snprintf(text, size, "?");
    else if (label == LABEL_LINE)
        snprintf(text, size, "%u", place->line);
    else
        snprintf(text, size, "%.64s:%u", etch_render_basename(place->file), place->line);
}

unsigned etch_picture_indent(const Etch__SketchStep *step)
{
    return 2 * (step->depth < 8 ? step->depth : 8);
}

/* Source text as shown: without its own indentation; the place in words where there is no text. */
const char *etch_picture_text(const Etch__SketchStep *step, char *spare, size_t size)
{
    const Etch__Place *place = etch_render_place(step->place);
    const char *text = etch_render_string(step->text);
    char function[128];

    text += strspn(text, " \t");
    if (*text)
        return text;
    if (etch_render_string(place->function)[0])
        snprintf(spare, size, "(no source) in %s()", etch_render_function(place, function, sizeof(function)));
    else
        snprintf(spare, size, "(no source)");
    return spare;
}

bool etch_picture_has_arrow(const struct picture *p, const Etch__SketchOrder *order)
{
    return order->predictor && p->model.n_shown > 0;
}

void etch_picture_tags(const struct picture *p, size_t i, char *text, size_t size)
{
    const Etch__SketchStep *step = p->sketch->steps[i];
    size_t n = 0, shown = 0;

    text[0] = '\0';
    if (step->count > 1)
        n += (size_t)snprintf(text, size, "  %" PRIu64 "x", step->count);
    for (size_t k = 0; k < p->sketch->n_orders && shown < 2; k++) {
        const Etch__SketchOrder *o = p->sketch->orders[k];

        if (o->before != i || etch_picture_has_arrow(p, o) || !etch_render_order_is_sound(p->sketch, o) ||
            p->sketch->steps[o->after]->thread == step->thread)
            continue;
        n += (size_t)snprintf(text + n, size - n, "  %s%zu", p->canvas.unicode ? "─▶" : "->",
                              p->model.row_of[o->after] + 1);
        shown++;
    }
    if (step->failing)
        snprintf(text + n, size - n, "  %s", p->canvas.unicode ? "✗" : "X");
}

/* Cells that a step would like beside its label: indentation, text and tags on one line. */
static unsigned natural_width(struct picture *p, size_t i)
{
    char spare[256], tags[128];
    const Etch__SketchStep *step = p->sketch->steps[i];

    etch_picture_tags(p, i, tags, sizeof(tags));
    return p->lane + 2 + etch_picture_indent(step) +
           etch_canvas_measure(&p->canvas, etch_picture_text(step, spare, sizeof(spare))) +
           etch_canvas_measure(&p->canvas, tags) + PICTURE_GAP;
}

static void measure_columns(struct picture *p, enum label label, unsigned *natural)
{
    const struct etch_render_model *m = &p->model;

    for (size_t c = 0; c < m->n_columns; c++) {
        const Etch__SketchThread *t = p->sketch->threads[m->columns[c]];

        natural[c] =
            p->lane + cells_of(p, "T%zu %.40s  fails", m->columns[c] + 1, etch_render_string(t->name)) + PICTURE_GAP;
        natural[c] = natural[c] < PICTURE_MIN_COLUMN ? PICTURE_MIN_COLUMN : natural[c];
        p->labels[c] = 0;
    }
    for (size_t i = 0; i < m->n_steps; i++) {
        size_t c = etch_render_column(m, i);
        char place[128];
        unsigned n;

        if (c == SIZE_MAX)
            continue;
        etch_picture_label(etch_render_place(p->sketch->steps[i]->place), label, place, sizeof(place));
        n = etch_canvas_measure(&p->canvas, place);
        p->labels[c] = n > p->labels[c] ? n : p->labels[c];
    }
    for (size_t i = 0; i < m->n_steps; i++) {
        size_t c = etch_render_column(m, i);
        unsigned n = c == SIZE_MAX ? 0 : natural_width(p, i) + p->labels[c];

        if (c != SIZE_MAX && n > natural[c])
            natural[c] = n;
    }
}

static uint64_t sum(const unsigned *v, size_t n)
{
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += v[i];
    return total;
}

/* Gives every column what it would like, or its fair share of what is left. */
static void share_width(struct picture *p, const unsigned *natural, unsigned room)
{
    size_t n = p->model.n_columns, left = n;
    bool settled = false;

    memset(p->width, 0, n * sizeof(*p->width));
    while (!settled) {
        settled = true;
        for (size_t c = 0; c < n; c++)
            if (!p->width[c] && (uint64_t)natural[c] * left <= room) {
                p->width[c] = natural[c];
                room -= natural[c];
                left--;
                settled = false;
            }
    }
    for (size_t c = 0; c < n; c++)
        if (!p->width[c])
            p->width[c] = room / (unsigned)left;
}

/* Before anything was compared, nothing decides. */
bool etch_picture_is_deciding(const struct picture *p, const Etch__SketchValue *value)
{
    return value->deciding && p->sketch->compared;
}

unsigned etch_picture_value(const struct picture *p, const Etch__SketchValue *value, bool named, size_t thread,
                            char *text, size_t size)
{
    char number[24], who[24] = "";

    etch_render_value(value, number);
    if (named)
        snprintf(who, sizeof(who), "T%zu ", thread + 1);
    snprintf(text, size, "%s%c %s%s%s", who, value->write ? 'W' : 'R', number, value->recovered ? " ~" : "",
             etch_picture_is_deciding(p, value) ? (p->canvas.unicode ? " ◀" : " <") : "");
    return (unsigned)(strlen(text) - (etch_picture_is_deciding(p, value) && p->canvas.unicode ? 2 : 0));
}

bool etch_picture_row_is_shared(const struct picture *p, size_t step)
{
    return p->model.rows[p->model.row_of[step]].unordered;
}

static void measure_values(struct picture *p)
{
    const Etch__Sketch *s = p->sketch;

    for (size_t v = 0; v < s->n_variables; v++)
        p->value_width[v] = cells_of(p, "%.22s", etch_render_string(s->variables[v]->name)) + 2;
    for (size_t i = 0; i < s->n_steps; i++)
        for (size_t k = 0; k < s->steps[i]->n_values; k++) {
            const Etch__SketchValue *value = s->steps[i]->values[k];
            char text[64];
            unsigned n = etch_picture_value(p, value, etch_picture_row_is_shared(p, i), s->steps[i]->thread, text,
                                            sizeof(text)) +
                         2;

            if (value->variable < s->n_variables && n > p->value_width[value->variable])
                p->value_width[value->variable] = n;
        }
}

static unsigned letters_most(const struct picture *p)
{
    unsigned most = 0;

    for (size_t i = 0; i < p->sketch->n_steps; i++) {
        unsigned n = 0;

        for (size_t k = 0; k < p->model.n_shown; k++)
            n += etch_render_step_has_predictor(p->sketch->steps[i], p->model.shown[k]);
        most = n > most ? n : most;
    }
    return most < PICTURE_LETTERS ? most : PICTURE_LETTERS;
}

static void place_columns(struct picture *p, const unsigned *natural, unsigned values)
{
    unsigned x = p->gutter, room = p->canvas.width - p->gutter - (p->value_columns ? values : 0);

    if (p->stacked) {
        for (size_t c = 0; c < p->model.n_columns; c++) {
            p->x[c] = p->gutter;
            p->width[c] = p->canvas.width - p->gutter;
        }
        return;
    }
    share_width(p, natural, room);
    for (size_t c = 0; c < p->model.n_columns; c++) {
        p->x[c] = x;
        x += p->width[c];
    }
    for (size_t v = 0; p->value_columns && v < p->sketch->n_variables; v++) {
        p->value_x[v] = x;
        x += p->value_width[v];
    }
}

/* Chooses the widest layout that fits. */
bool etch_picture_place(struct picture *p)
{
    unsigned letters = letters_most(p), width = p->canvas.width;
    size_t n = p->model.n_columns;
    unsigned *natural = calloc(n + 1, sizeof(*natural));
    uint64_t values, least = (uint64_t)n * PICTURE_MIN_COLUMN;

    if (!natural)
        return false;
    p->gutter = etch_picture_digits(p->model.n_rows) + 3;
    p->lane = letters ? letters + 3 : 2;
    measure_values(p);
    values = sum(p->value_width, p->sketch->n_variables);
    p->stacked = p->gutter + least > width;
    p->value_columns = !p->stacked && p->gutter + least + values <= width && values <= width / 2;
    measure_columns(p, LABEL_PLACE, natural);
    p->label = LABEL_PLACE;
    if (!p->stacked && p->gutter + sum(natural, n) + (p->value_columns ? values : 0) > width) {
        p->label = LABEL_LINE;
        measure_columns(p, LABEL_LINE, natural);
    }
    place_columns(p, natural, (unsigned)values);
    free(natural);
    return true;
}
