/* SPDX-License-Identifier: MIT */
/* The sketch in a terminal: a column for each thread, time down, values beside. Where the threads do not fit beside
 * each other, one column with the thread's number before each step; nothing is left out for want of width. */
#include "sketch/render.h"
#include "sketch/render/canvas.h"
#include "sketch/render/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MIN_WIDTH = 40, MAX_WIDTH = 400, MIN_COLUMN = 26, GAP = 3, MAX_LINES = 4, MAX_LETTERS = 3, NOTE_CELLS = 2000 };

/* What stands left of the source text. */
enum label { LABEL_PLACE, LABEL_LINE };

struct picture {
    const Etch__Sketch *sketch;
    struct etch_render_model model;
    struct etch_canvas canvas;
    bool all;
    bool stacked;       /* threads below each other instead of side by side */
    bool values_beside; /* in columns of their own */
    enum label label;
    unsigned gutter, lane;
    unsigned *x, *width, *labels; /* by column: of its lane; all of it; cells of its labels */
    unsigned *value_x, *value_width;
    unsigned *step_y;  /* by step */
    const char **file; /* by column: of the step above */
    unsigned y;
};

static unsigned flow(struct picture *p, unsigned x, unsigned width, unsigned hang, const struct etch_text_run *runs,
                     size_t n)
{
    unsigned lines = etch_canvas_flow(&p->canvas, x, p->y, width, hang, runs, n);

    p->y += lines;
    return lines;
}

static void say(struct picture *p, enum etch_look look, unsigned hang, const char *text)
{
    struct etch_text_run run = {text, look, NOTE_CELLS};

    flow(p, 1, p->canvas.width - 1, hang, &run, 1);
}

/* ---- Head and causes ---- */

static void draw_head(struct picture *p)
{
    static const char *const sources[] = {"none", "pt", "soft", "vpt"};
    const Etch__Sketch *s = p->sketch;
    const Etch__Place *place = etch_render_place(s->failing_place);
    const char *dot = p->canvas.unicode ? " · " : " - ";
    char headline[512], where[512] = "", runs[128], how[256], round[64] = "";
    unsigned left, right;

    etch_render_headline(s, headline, sizeof(headline));
    etch_render_runs(s, runs, sizeof(runs));
    if (place->line)
        snprintf(where, sizeof(where), "  %s:%u", etch_render_basename(place->file), place->line);
    if (s->round)
        snprintf(round, sizeof(round), "%sround %u (%s%u)", dot, s->round,
                 p->canvas.unicode ? "σ=" : "sigma=", s->sigma);
    snprintf(how, sizeof(how), "%s%ssource %s%s", runs, dot, (unsigned)s->source < 4 ? sources[s->source] : "unknown",
             round);
    struct etch_text_run title[] = {
        {"etch  ", LOOK_DIM, 0}, {headline, s->failing_runs ? LOOK_FAILURE : LOOK_BOLD, 0}, {where, LOOK_BOLD, 0}};
    struct etch_text_run facts = {how, LOOK_DIM, 0};

    left = 6 + etch_canvas_measure(&p->canvas, headline) + etch_canvas_measure(&p->canvas, where);
    right = etch_canvas_measure(&p->canvas, how);
    if (left + right + 5 <= p->canvas.width)
        etch_canvas_flow(&p->canvas, p->canvas.width - 1 - right, p->y, right, 0, &facts, 1);
    flow(p, 1, p->canvas.width - 1, 6, title, 3);
    if (left + right + 5 > p->canvas.width)
        flow(p, 7, p->canvas.width - 8, 0, &facts, 1);
    p->y++;
}

static void letter_of(size_t shown, char letter[2])
{
    letter[0] = (char)(shown < 26 ? 'A' + (int)shown : '+');
    letter[1] = '\0';
}

static unsigned longest_kind(const struct picture *p)
{
    unsigned longest = 0;

    for (size_t i = 0; i < p->model.n_shown; i++) {
        size_t n = strlen(etch_render_string(p->sketch->predictors[p->model.shown[i]]->kind));

        longest = n > longest ? (unsigned)n : longest;
    }
    return longest < 12 ? longest : 12;
}

static unsigned longest_cause(struct picture *p)
{
    unsigned longest = 0;

    for (size_t i = 0; i < p->model.n_shown; i++) {
        const char *text = etch_render_string(p->sketch->predictors[p->model.shown[i]]->text);
        unsigned n = etch_canvas_measure(&p->canvas, text);

        longest = n > longest ? n : longest;
    }
    return longest;
}

static void draw_predictor(struct picture *p, size_t shown, unsigned x, unsigned kind_width, unsigned text_width)
{
    const Etch__Predictor *q = p->sketch->predictors[p->model.shown[shown]];
    unsigned text_x = x + 2 + kind_width + 2, width = p->canvas.width - text_x;
    char letter[2], counts[128], f[64];

    letter_of(shown, letter);
    etch_render_counts(q, counts, sizeof(counts));
    if (p->all && q->f_hi > 0)
        snprintf(f, sizeof(f), "   F %.2f (%.2f to %.2f)", q->f, q->f_lo, q->f_hi);
    else
        snprintf(f, sizeof(f), "   F %.2f", q->f);
    struct etch_text_run mark = {letter, LOOK_CAUSE, 0}, kind = {etch_render_string(q->kind), LOOK_DIM, kind_width};
    struct etch_text_run text = {etch_render_string(q->text), LOOK_BOLD, width * MAX_LINES};
    struct etch_text_run numbers[] = {{counts, LOOK_PLAIN, 0}, {f, LOOK_PLAIN, 0}};
    unsigned need = (unsigned)strlen(counts) + (unsigned)strlen(f);
    bool beside = text_width + 3 + need <= width;

    etch_canvas_flow(&p->canvas, x, p->y, 2, 0, &mark, 1);
    etch_canvas_flow(&p->canvas, x + 2, p->y, kind_width, 0, &kind, 1);
    if (beside)
        etch_canvas_flow(&p->canvas, text_x + text_width + 3, p->y, need, 0, numbers, 2);
    flow(p, text_x, beside ? text_width : width, 2, &text, 1);
    if (!beside)
        flow(p, text_x, width, 2, numbers, 2);
}

static void draw_causes(struct picture *p)
{
    bool cause = etch_render_has_cause(p->sketch);
    unsigned kind_width = longest_kind(p), text_width = longest_cause(p);
    char more[128];

    if (!p->sketch->compared || !p->sketch->failing_runs)
        return;
    if (!p->model.n_shown) {
        say(p, LOOK_BOLD, 0, "No predictor tells the failing runs from the passing ones yet.");
        p->y++;
        return;
    }
    if (!cause)
        say(p, LOOK_BOLD, 0, "No strong predictor yet; the best hints:");
    else
        etch_canvas_flow(&p->canvas, 1, p->y, 6, 0, &(struct etch_text_run){"CAUSE", LOOK_CAUSE, 0}, 1);
    for (size_t i = 0; i < p->model.n_shown; i++)
        draw_predictor(p, i, cause ? 8 : 3, kind_width, text_width);
    if (p->model.unshown) {
        snprintf(more, sizeof(more), "%zu more with --all", p->model.unshown);
        flow(p, cause ? 10 : 5, p->canvas.width - 10, 0, &(struct etch_text_run){more, LOOK_DIM, 0}, 1);
    }
    p->y++;
}

/* ---- How wide things are ---- */

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

static unsigned digits(size_t n)
{
    unsigned count = 1;

    for (; n >= 10; n /= 10)
        count++;
    return count;
}

static void label_text(const Etch__Place *place, enum label label, char *text, size_t size)
{
    if (!place->line)
        snprintf(text, size, "?");
    else if (label == LABEL_LINE)
        snprintf(text, size, "%u", place->line);
    else
        snprintf(text, size, "%.64s:%u", etch_render_basename(place->file), place->line);
}

static unsigned indent_of(const Etch__SketchStep *step)
{
    return 2 * (step->depth < 8 ? step->depth : 8);
}

/* Source text as shown: without its own indentation; the place in words where there is no text. */
static const char *text_of(const Etch__SketchStep *step, char *spare, size_t size)
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

/* Arrows are for the orders of a cause; the others are told in words. */
static bool has_arrow(const struct picture *p, const Etch__SketchOrder *order)
{
    return order->predictor && p->model.n_shown > 0;
}

/* What follows the text: how often it ran, what it is proven to be before, whether it failed. */
static void tags_of(const struct picture *p, size_t i, char *text, size_t size)
{
    const Etch__SketchStep *step = p->sketch->steps[i];
    size_t n = 0, shown = 0;

    text[0] = '\0';
    if (step->count > 1)
        n += (size_t)snprintf(text, size, "  %" PRIu64 "x", step->count);
    for (size_t k = 0; k < p->sketch->n_orders && shown < 2; k++) {
        const Etch__SketchOrder *o = p->sketch->orders[k];

        if (o->before != i || has_arrow(p, o) || !etch_render_order_is_sound(p->sketch, o) ||
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

    tags_of(p, i, tags, sizeof(tags));
    return p->lane + 2 + indent_of(step) + etch_canvas_measure(&p->canvas, text_of(step, spare, sizeof(spare))) +
           etch_canvas_measure(&p->canvas, tags) + GAP;
}

static void measure_columns(struct picture *p, enum label label, unsigned *natural)
{
    const struct etch_render_model *m = &p->model;

    for (size_t c = 0; c < m->n_columns; c++) {
        const Etch__SketchThread *t = p->sketch->threads[m->columns[c]];

        natural[c] = p->lane + cells_of(p, "T%zu %.40s  fails", m->columns[c] + 1, etch_render_string(t->name)) + GAP;
        natural[c] = natural[c] < MIN_COLUMN ? MIN_COLUMN : natural[c];
        p->labels[c] = 0;
    }
    for (size_t i = 0; i < m->n_steps; i++) {
        size_t c = etch_render_column(m, i);
        char place[128];
        unsigned n;

        if (c == SIZE_MAX)
            continue;
        label_text(etch_render_place(p->sketch->steps[i]->place), label, place, sizeof(place));
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
static bool is_deciding(const struct picture *p, const Etch__SketchValue *value)
{
    return value->deciding && p->sketch->compared;
}

static unsigned value_cell(const struct picture *p, const Etch__SketchValue *value, bool named, size_t thread,
                           char *text, size_t size)
{
    char number[24], who[24] = "";

    etch_render_value(value, number);
    if (named)
        snprintf(who, sizeof(who), "T%zu ", thread + 1);
    snprintf(text, size, "%s%c %s%s", who, value->write ? 'W' : 'R', number,
             is_deciding(p, value) ? (p->canvas.unicode ? " ◀" : " <") : "");
    return (unsigned)(strlen(text) - (is_deciding(p, value) && p->canvas.unicode ? 2 : 0));
}

static bool row_is_shared(const struct picture *p, size_t step)
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
            unsigned n = value_cell(p, value, row_is_shared(p, i), s->steps[i]->thread, text, sizeof(text)) + 2;

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
    return most < MAX_LETTERS ? most : MAX_LETTERS;
}

static void place_columns(struct picture *p, const unsigned *natural, unsigned values)
{
    unsigned x = p->gutter, room = p->canvas.width - p->gutter - (p->values_beside ? values : 0);

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
    for (size_t v = 0; p->values_beside && v < p->sketch->n_variables; v++) {
        p->value_x[v] = x;
        x += p->value_width[v];
    }
}

/* Chooses what goes where, from what would be best to what fits. */
static bool lay_out(struct picture *p)
{
    unsigned letters = letters_most(p), width = p->canvas.width;
    size_t n = p->model.n_columns;
    unsigned *natural = calloc(n + 1, sizeof(*natural));
    uint64_t values, least = (uint64_t)n * MIN_COLUMN;

    if (!natural)
        return false;
    p->gutter = digits(p->model.n_rows) + 3;
    p->lane = letters ? letters + 3 : 2;
    measure_values(p);
    values = sum(p->value_width, p->sketch->n_variables);
    p->stacked = p->gutter + least > width;
    p->values_beside = !p->stacked && p->gutter + least + values <= width && values <= width / 2;
    measure_columns(p, LABEL_PLACE, natural);
    p->label = LABEL_PLACE;
    if (!p->stacked && p->gutter + sum(natural, n) + (p->values_beside ? values : 0) > width) {
        p->label = LABEL_LINE;
        measure_columns(p, LABEL_LINE, natural);
    }
    place_columns(p, natural, (unsigned)values);
    free(natural);
    return true;
}

/* ---- Threads and steps ---- */

/* "T2 consumer  fails", its file where the labels are line numbers, and how it was made. */
static unsigned draw_thread(struct picture *p, size_t c, unsigned x, unsigned width)
{
    const Etch__SketchThread *t = p->sketch->threads[p->model.columns[c]];
    bool is_made = etch_render_string(t->made_by)[0] && strcmp(t->made_by, etch_render_string(t->name)) != 0;
    char number[24], made[512], file[80] = "";
    unsigned lines;

    snprintf(number, sizeof(number), "T%zu ", p->model.columns[c] + 1);
    snprintf(made, sizeof(made), "%smade by %.400s", p->stacked ? "  " : "", etch_render_string(t->made_by));
    if (p->label == LABEL_LINE && p->file[c])
        snprintf(file, sizeof(file), "  %.64s", p->file[c]);
    struct etch_text_run runs[] = {{number, LOOK_BOLD, 0},
                                   {etch_render_string(t->name), LOOK_BOLD, width * 2},
                                   {t->failing ? (p->canvas.unicode ? "  ✗ fails" : "  X fails") : "", LOOK_FAILURE, 0},
                                   {file, LOOK_DIM, 0},
                                   {made, LOOK_DIM, width * 2}};

    lines = etch_canvas_flow(&p->canvas, x, p->y, width, 3, runs, is_made && p->stacked ? 5 : 4);
    if (is_made && !p->stacked)
        lines += etch_canvas_flow(&p->canvas, x, p->y + lines, width, 3, &runs[4], 1);
    return lines;
}

static void find_first_files(struct picture *p)
{
    for (size_t k = 0; k < p->model.n_steps; k++) {
        size_t c = etch_render_column(&p->model, p->model.order[k]);
        const Etch__Place *place = etch_render_place(p->sketch->steps[p->model.order[k]]->place);

        if (c != SIZE_MAX && !p->file[c] && place->line)
            p->file[c] = etch_render_basename(place->file);
    }
}

static void draw_threads(struct picture *p)
{
    unsigned most = 0;

    find_first_files(p);
    for (size_t c = 0; c < p->model.n_columns; c++) {
        unsigned x = p->stacked ? 1 : p->x[c] + p->lane;
        unsigned lines = draw_thread(p, c, x, p->stacked ? p->canvas.width - 2 : p->width[c] - p->lane - GAP + 1);

        if (p->stacked)
            p->y += lines;
        most = lines > most ? lines : most;
    }
    for (size_t v = 0; p->values_beside && v < p->sketch->n_variables; v++) {
        struct etch_text_run name = {etch_render_string(p->sketch->variables[v]->name), LOOK_VALUE,
                                     p->value_width[v] - 2};

        etch_canvas_flow(&p->canvas, p->value_x[v], p->y, p->value_width[v], 0, &name, 1);
    }
    p->y += p->stacked ? 1 : most;
}

static void draw_letters(struct picture *p, size_t i, unsigned x, unsigned y)
{
    unsigned drawn = 0;

    for (size_t k = 0; k < p->model.n_shown && drawn < MAX_LETTERS; k++) {
        char letter[2];

        if (!etch_render_step_has_predictor(p->sketch->steps[i], p->model.shown[k]))
            continue;
        letter_of(k, letter);
        etch_canvas_flow(&p->canvas, x + 2 + drawn++, y, 1, 0, &(struct etch_text_run){letter, LOOK_CAUSE, 0}, 1);
    }
}

static bool step_is_marked(const struct picture *p, const Etch__SketchStep *step)
{
    for (size_t k = 0; k < p->model.n_shown; k++)
        if (etch_render_step_has_predictor(step, p->model.shown[k]))
            return true;
    return false;
}

/* The step's own line or lines: label, indentation, text, tags. */
static unsigned draw_text(struct picture *p, size_t i, size_t c, unsigned y)
{
    const Etch__SketchStep *step = p->sketch->steps[i];
    unsigned x = p->x[c] + p->lane, width = p->width[c] - p->lane - GAP + (p->stacked ? 2 : 0);
    unsigned label_width = p->stacked ? 0 : p->labels[c], indent = indent_of(step);
    char place[128], before[192], spare[256], tags[128];

    label_text(etch_render_place(step->place), p->label, place, sizeof(place));
    tags_of(p, i, tags, sizeof(tags));
    if (p->stacked)
        snprintf(before, sizeof(before), "T%u %s ", step->thread + 1, place);
    else
        snprintf(before, sizeof(before), "%*s%s  ", (int)(label_width - etch_canvas_measure(&p->canvas, place)), "",
                 place);
    if (p->stacked)
        label_width = 1;
    if (label_width + 2 + indent > width / 2)
        indent = 0;
    struct etch_text_run runs[] = {
        {before, LOOK_DIM, 0},
        {"                ", LOOK_PLAIN, indent},
        {text_of(step, spare, sizeof(spare)), step_is_marked(p, step) ? LOOK_BOLD : LOOK_PLAIN, width * MAX_LINES},
        {tags, step->failing ? LOOK_FAILURE : LOOK_DIM, 0}};

    if (!indent)
        runs[1].text = "";
    else
        runs[1].text += 16 - indent;
    return etch_canvas_flow(&p->canvas, x, y, width, label_width + 2 + indent, runs, 4);
}

static unsigned draw_inline_values(struct picture *p, size_t i, unsigned x, unsigned y, unsigned width)
{
    const Etch__SketchStep *step = p->sketch->steps[i];
    unsigned lines = 0;

    for (size_t k = 0; k < step->n_values; k++) {
        const Etch__SketchValue *value = step->values[k];
        bool known = value->variable < p->sketch->n_variables;
        char text[64];

        value_cell(p, value, false, 0, text, sizeof(text));
        struct etch_text_run runs[] = {
            {known ? etch_render_string(p->sketch->variables[value->variable]->name) : "?", LOOK_VALUE, width},
            {"  ", LOOK_PLAIN, 0},
            {text, is_deciding(p, value) ? LOOK_CAUSE : LOOK_VALUE, 0}};

        lines += etch_canvas_flow(&p->canvas, x, y + lines, width, 2, runs, 3);
    }
    return lines;
}

static void draw_beside_values(struct picture *p, size_t i, unsigned *used)
{
    const Etch__SketchStep *step = p->sketch->steps[i];

    for (size_t k = 0; k < step->n_values; k++) {
        const Etch__SketchValue *value = step->values[k];
        char text[64];
        unsigned y;

        if (value->variable >= p->sketch->n_variables)
            continue;
        value_cell(p, value, row_is_shared(p, i), step->thread, text, sizeof(text));
        y = p->step_y[i] > used[value->variable] ? p->step_y[i] : used[value->variable];
        etch_canvas_flow(&p->canvas, p->value_x[value->variable], y, p->value_width[value->variable], 0,
                         &(struct etch_text_run){text, is_deciding(p, value) ? LOOK_CAUSE : LOOK_VALUE, 0}, 1);
        used[value->variable] = y + 1;
    }
}

/* In narrow columns a label is a line number only: the file stands above where it changes. */
static unsigned draw_file(struct picture *p, const Etch__SketchStep *step, size_t c, unsigned y)
{
    const char *file = etch_render_basename(etch_render_place(step->place)->file);
    char text[80];

    if (p->label != LABEL_LINE || !*file || (p->file[c] && !strcmp(p->file[c], file)))
        return 0;
    p->file[c] = file;
    snprintf(text, sizeof(text), "%.64s:", file);
    return etch_canvas_flow(&p->canvas, p->x[c] + p->lane, y, p->width[c] - p->lane - GAP, 0,
                            &(struct etch_text_run){text, LOOK_DIM, 0}, 1);
}

static unsigned draw_step(struct picture *p, size_t i, size_t c, unsigned y)
{
    const Etch__SketchStep *step = p->sketch->steps[i];
    unsigned x = p->x[c] + p->lane, width = p->width[c] - p->lane - GAP + (p->stacked ? 2 : 0), top = y;
    unsigned inset = (p->stacked ? 3 : p->labels[c] + 2);

    inset = inset > width / 2 ? 2 : inset;
    if (step->lost_before)
        y += etch_canvas_flow(&p->canvas, x, y, width, 0,
                              &(struct etch_text_run){p->canvas.unicode ? "┄┄ lost: steps may be missing here"
                                                                        : "~~ lost: steps may be missing here",
                                                      LOOK_LOSS, 0},
                              1);
    y += draw_file(p, step, c, y);
    p->step_y[i] = y;
    draw_letters(p, i, p->x[c], y);
    y += draw_text(p, i, c, y);
    if (etch_render_string(step->note)[0])
        y += etch_canvas_flow(
            &p->canvas, x + inset, y, width - inset, 0,
            &(struct etch_text_run){step->note, step->failing ? LOOK_FAILURE : LOOK_PLAIN, NOTE_CELLS}, 1);
    if (!p->values_beside)
        y += draw_inline_values(p, i, x + inset, y, width - inset);
    return y - top;
}

/* An arrow that must pass others in its own row gets a line above them. */
static bool row_has_target(const struct picture *p, size_t row)
{
    const Etch__Sketch *s = p->sketch;

    for (size_t k = 0; k < s->n_orders; k++)
        if (has_arrow(p, s->orders[k]) && etch_render_order_is_sound(s, s->orders[k]) &&
            p->model.row_of[s->orders[k]->after] == row)
            return true;
    return false;
}

static void draw_row(struct picture *p, size_t row, unsigned *used)
{
    const struct etch_render_row *r = &p->model.rows[row];
    unsigned top = p->y, bottom = p->y, lines = 0;
    size_t last = SIZE_MAX;
    char number[32];

    if (r->unordered && !p->stacked && row_has_target(p, row))
        top = bottom = ++p->y;
    for (size_t k = 0; k < r->n; k++) {
        size_t i = p->model.order[r->first + k], c = etch_render_column(&p->model, i);

        if (c == SIZE_MAX)
            continue;
        lines = (c == last || p->stacked ? lines : 0);
        lines += draw_step(p, i, c, top + lines);
        last = c;
        bottom = top + lines > bottom ? top + lines : bottom;
        if (p->values_beside)
            draw_beside_values(p, i, used);
    }
    for (size_t v = 0; p->values_beside && v < p->sketch->n_variables; v++)
        bottom = used[v] > bottom ? used[v] : bottom;
    if (last == SIZE_MAX)
        return;
    snprintf(number, sizeof(number), "%*zu%s", (int)digits(p->model.n_rows), row + 1, r->unordered ? "~" : "");
    etch_canvas_flow(&p->canvas, 1, p->step_y[p->model.order[r->first]], p->gutter - 1, 0,
                     &(struct etch_text_run){number, r->unordered ? LOOK_LOSS : LOOK_DIM, 0}, 1);
    if (r->unordered && p->stacked)
        for (unsigned y = p->step_y[p->model.order[r->first]] + 1; y < bottom; y++)
            etch_canvas_flow(&p->canvas, p->gutter - 2, y, 1, 0, &(struct etch_text_run){"~", LOOK_LOSS, 0}, 1);
    p->y = bottom;
}

/* ---- Arrows ---- */

static void draw_vertical(struct picture *p, unsigned x, unsigned from, unsigned to)
{
    etch_canvas_glyph(&p->canvas, x, from, GLYPH_FROM, LOOK_CAUSE);
    if (etch_canvas_is_blank(&p->canvas, x + 1, from))
        etch_canvas_glyph(&p->canvas, x + 1, from, GLYPH_HORIZONTAL, LOOK_CAUSE);
    for (unsigned y = from + 1; y < to; y++)
        etch_canvas_glyph(&p->canvas, x, y, GLYPH_VERTICAL, LOOK_CAUSE);
}

static void draw_horizontal(struct picture *p, unsigned y, unsigned from, unsigned to)
{
    for (unsigned x = from; x < to; x++)
        etch_canvas_glyph(&p->canvas, x, y, GLYPH_HORIZONTAL, LOOK_CAUSE);
}

/* To the right: into the target's lane. */
static void draw_rightwards(struct picture *p, unsigned xa, unsigned xb, unsigned y, unsigned target)
{
    etch_canvas_glyph(&p->canvas, xa, y, GLYPH_TO, LOOK_CAUSE);
    if (y == target || xa == xb) {
        draw_horizontal(p, y, xa + 1, xb + 1);
    } else {
        draw_horizontal(p, y, xa + 1, xb);
        etch_canvas_glyph(&p->canvas, xb, y, GLYPH_DOWN, LOOK_CAUSE);
        for (unsigned k = y + 1; k < target; k++)
            etch_canvas_glyph(&p->canvas, xb, k, GLYPH_VERTICAL, LOOK_CAUSE);
        etch_canvas_glyph(&p->canvas, xb, target, GLYPH_TO, LOOK_CAUSE);
    }
    etch_canvas_glyph(&p->canvas, xb + 1, target, GLYPH_RIGHT, LOOK_CAUSE);
}

/* To the left: up to the end of the target's text, or over a line of its own into the target's lane. */
static void draw_leftwards(struct picture *p, unsigned xa, unsigned xb, unsigned y, unsigned target)
{
    unsigned x = xa;

    etch_canvas_glyph(&p->canvas, xa, y, GLYPH_BACK, LOOK_CAUSE);
    if (y == target) {
        while (x > xb && etch_canvas_is_blank(&p->canvas, x - 1, y))
            x--;
        draw_horizontal(p, y, x + 2, xa);
        etch_canvas_glyph(&p->canvas, x + 1, y, GLYPH_LEFT, LOOK_CAUSE);
        return;
    }
    draw_horizontal(p, y, xb + 1, xa);
    etch_canvas_glyph(&p->canvas, xb, y, GLYPH_DOWN_BACK, LOOK_CAUSE);
    for (unsigned k = y + 1; k < target; k++)
        etch_canvas_glyph(&p->canvas, xb, k, GLYPH_VERTICAL, LOOK_CAUSE);
    etch_canvas_glyph(&p->canvas, xb, target, GLYPH_TO, LOOK_CAUSE);
    etch_canvas_glyph(&p->canvas, xb + 1, target, GLYPH_RIGHT, LOOK_CAUSE);
}

static void draw_arrow(struct picture *p, const Etch__SketchOrder *order)
{
    size_t a = order->before, b = order->after;
    size_t ca = etch_render_column(&p->model, a), cb = etch_render_column(&p->model, b);
    const struct etch_render_row *row = &p->model.rows[p->model.row_of[b]];
    unsigned ya = p->step_y[a], yb = p->step_y[b], turn = yb;

    if (ca == SIZE_MAX || cb == SIZE_MAX || ya >= yb)
        return;
    if (row->unordered && !p->stacked && ca != cb) {
        for (size_t k = 0; k < row->n; k++) {
            unsigned y = p->step_y[p->model.order[row->first + k]];

            turn = y < turn ? y : turn;
        }
        turn = turn > ya + 1 ? turn - 1 : turn;
    }
    draw_vertical(p, p->x[ca], ya, turn);
    if (p->x[cb] >= p->x[ca])
        draw_rightwards(p, p->x[ca], p->x[cb], turn, yb);
    else
        draw_leftwards(p, p->x[ca], p->x[cb], turn, yb);
}

/* ---- Foot: what is not known, what was lost, what else there is ---- */

static const char *step_name(const struct picture *p, size_t i, char name[48])
{
    snprintf(name, 48, "T%u's step %zu", p->sketch->steps[i]->thread + 1, p->model.row_of[i] + 1);
    return name;
}

static void draw_unordered(struct picture *p)
{
    const Etch__Sketch *s = p->sketch;
    char text[512], one[48], other[48];

    for (size_t r = 0; r < p->model.n_rows; r++)
        if (p->model.rows[r].unordered) {
            say(p, LOOK_LOSS, 2, "~ steps of one number are unordered: nothing proves which came first.");
            break;
        }
    for (size_t k = 0; k < s->n_unordered; k++) {
        const Etch__SketchUnordered *u = s->unordered[k];
        const char *evidence = etch_render_string(u->evidence);

        if (u->one >= s->n_steps || u->other >= s->n_steps)
            continue;
        snprintf(text, sizeof(text), "%s and %s are unordered%s%.300s%s", step_name(p, u->one, one),
                 step_name(p, u->other, other), evidence[0] ? " (" : "", evidence, evidence[0] ? ")." : ".");
        say(p, LOOK_LOSS, 2, text);
    }
}

static bool has_unknown_value(const Etch__Sketch *s)
{
    for (size_t i = 0; i < s->n_steps; i++)
        for (size_t k = 0; k < s->steps[i]->n_values; k++)
            if (s->steps[i]->values[k]->known_case != ETCH__SKETCH_VALUE__KNOWN_VALUE)
                return true;
    return false;
}

static bool has_tag_order(const struct picture *p)
{
    for (size_t k = 0; k < p->sketch->n_orders; k++)
        if (!has_arrow(p, p->sketch->orders[k]) && etch_render_order_is_sound(p->sketch, p->sketch->orders[k]) &&
            p->sketch->steps[p->sketch->orders[k]->before]->thread !=
                p->sketch->steps[p->sketch->orders[k]->after]->thread)
            return true;
    return false;
}

static void draw_losses(struct picture *p)
{
    const Etch__Sketch *s = p->sketch;
    char text[700], loss[600];

    if (!etch_render_has_loss(s)) {
        if (s->failing_runs)
            say(p, LOOK_DIM, 0, "Nothing was lost.");
        return;
    }
    for (size_t i = 0; i < s->n_losses && i < 8; i++) {
        etch_render_loss(s->losses[i], loss, sizeof(loss));
        snprintf(text, sizeof(text), "LOST  %s", loss);
        say(p, LOOK_LOSS, 6, text);
    }
    if (s->n_losses > 8) {
        snprintf(text, sizeof(text), "LOST  %zu times more", s->n_losses - 8);
        say(p, LOOK_LOSS, 6, text);
    }
}

static void draw_conflicts(struct picture *p)
{
    for (size_t i = 0; i < p->sketch->n_conflicts; i++) {
        char text[700];

        snprintf(text, sizeof(text), "CONTRADICTION  %.600s", etch_render_string(p->sketch->conflicts[i]->text));
        say(p, LOOK_LOSS, 15, text);
    }
}

static void draw_idle(struct picture *p)
{
    const Etch__Sketch *s = p->sketch;
    char text[128];

    for (size_t i = 0; i < s->n_threads; i++) {
        bool used = false;

        for (size_t c = 0; c < p->model.n_columns; c++)
            used |= p->model.columns[c] == i;
        if (used)
            continue;
        snprintf(text, sizeof(text), "T%zu %.64s has no step that matters here.", i + 1,
                 etch_render_string(s->threads[i]->name));
        say(p, LOOK_DIM, 0, text);
    }
    for (size_t i = 0; i < s->n_steps; i++)
        if (s->steps[i]->thread >= s->n_threads) {
            say(p, LOOK_LOSS, 0, "Some steps belong to no known thread and are not drawn.");
            break;
        }
}

static void draw_foot(struct picture *p)
{
    const Etch__Sketch *s = p->sketch;
    char text[256];

    p->y++;
    draw_unordered(p);
    if (has_unknown_value(s))
        say(p, LOOK_LOSS, 2, "? is a value that is not known.");
    if (has_tag_order(p))
        say(p, LOOK_DIM, 0,
            p->canvas.unicode ? "─▶N: proven to be before step N." : "->N: proven to be before step N.");
    draw_losses(p);
    draw_conflicts(p);
    for (size_t i = 0; i < s->n_notes; i++)
        say(p, LOOK_LOSS, 2, etch_render_string(s->notes[i]));
    draw_idle(p);
    if (s->other_failures) {
        snprintf(text, sizeof(text), "%u failing run%s of other bugs %s left out.", s->other_failures,
                 s->other_failures == 1 ? "" : "s", s->other_failures == 1 ? "is" : "are");
        say(p, LOOK_DIM, 0, text);
    }
    if (s->slice_statements) {
        snprintf(text, sizeof(text), "slice %u statements, %u executed, %zu shown.", s->slice_statements,
                 s->executed_statements, s->n_steps);
        say(p, LOOK_DIM, 0, text);
    }
    if (p->model.n_columns)
        say(p, LOOK_DIM, 0, "--html FILE has the evidence of each line.");
}

/* ---- All of it ---- */

static bool begin(struct picture *p, const Etch__Sketch *sketch, const struct etch_render_terminal *options)
{
    unsigned width = options->width < MIN_WIDTH ? MIN_WIDTH : options->width > MAX_WIDTH ? MAX_WIDTH : options->width;
    size_t n = sketch->n_threads + 1, v = sketch->n_variables + 1;

    *p = (struct picture){.sketch = sketch, .all = options->all};
    etch_canvas_begin(&p->canvas, width, options->unicode, options->colour);
    p->x = calloc(n, sizeof(*p->x));
    p->width = calloc(n, sizeof(*p->width));
    p->labels = calloc(n, sizeof(*p->labels));
    p->file = calloc(n, sizeof(*p->file));
    p->value_x = calloc(v, sizeof(*p->value_x));
    p->value_width = calloc(v, sizeof(*p->value_width));
    p->step_y = calloc(sketch->n_steps + 1, sizeof(*p->step_y));
    return etch_render_model_make(&p->model, sketch, options->all) == 0 && p->x && p->width && p->labels && p->file &&
           p->value_x && p->value_width && p->step_y;
}

static void release(struct picture *p)
{
    etch_canvas_release(&p->canvas);
    etch_render_model_release(&p->model);
    free(p->x);
    free(p->width);
    free(p->labels);
    free(p->file);
    free(p->value_x);
    free(p->value_width);
    free(p->step_y);
}

static bool draw_steps(struct picture *p)
{
    unsigned *used = calloc(p->sketch->n_variables + 1, sizeof(*used));

    if (!used || !lay_out(p)) {
        free(used);
        return false;
    }
    draw_threads(p);
    for (size_t row = 0; row < p->model.n_rows; row++)
        draw_row(p, row, used);
    for (size_t k = 0; k < p->sketch->n_orders; k++)
        if (has_arrow(p, p->sketch->orders[k]) && etch_render_order_is_sound(p->sketch, p->sketch->orders[k]))
            draw_arrow(p, p->sketch->orders[k]);
    free(used);
    return true;
}

char *etch_render_terminal(const Etch__Sketch *sketch, const struct etch_render_terminal *options, size_t *size)
{
    struct picture p;
    char *text = NULL;

    if (begin(&p, sketch, options)) {
        draw_head(&p);
        draw_causes(&p);
        if (p.model.n_columns == 0 || draw_steps(&p)) {
            draw_foot(&p);
            text = etch_canvas_write(&p.canvas, size);
        }
    }
    release(&p);
    return text;
}
