/* SPDX-License-Identifier: MIT */
/* The steps of a picture: names of threads, then row by row the steps with their values. */
#include "sketch/render/picture.h"

#include <stdio.h>
#include <string.h>

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

void etch_picture_threads(struct picture *p)
{
    unsigned most = 0;

    find_first_files(p);
    for (size_t c = 0; c < p->model.n_columns; c++) {
        unsigned x = p->stacked ? 1 : p->x[c] + p->lane;
        unsigned lines =
            draw_thread(p, c, x, p->stacked ? p->canvas.width - 2 : p->width[c] - p->lane - PICTURE_GAP + 1);

        if (p->stacked)
            p->y += lines;
        most = lines > most ? lines : most;
    }
    for (size_t v = 0; p->value_columns && v < p->sketch->n_variables; v++) {
        struct etch_text_run name = {etch_render_string(p->sketch->variables[v]->name), LOOK_VALUE,
                                     p->value_width[v] - 2};

        etch_canvas_flow(&p->canvas, p->value_x[v], p->y, p->value_width[v], 0, &name, 1);
    }
    p->y += p->stacked ? 1 : most;
}

static void draw_letters(struct picture *p, size_t i, unsigned x, unsigned y)
{
    unsigned drawn = 0;

    for (size_t k = 0; k < p->model.n_shown && drawn < PICTURE_LETTERS; k++) {
        char letter[2];

        if (!etch_render_step_has_predictor(p->sketch->steps[i], p->model.shown[k]))
            continue;
        etch_picture_letter(k, letter);
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
    unsigned x = p->x[c] + p->lane, width = p->width[c] - p->lane - PICTURE_GAP + (p->stacked ? 2 : 0);
    unsigned label_width = p->stacked ? 0 : p->labels[c], indent = etch_picture_indent(step);
    char place[128], before[192], spare[256], tags[128];

    etch_picture_label(etch_render_place(step->place), p->label, place, sizeof(place));
    etch_picture_tags(p, i, tags, sizeof(tags));
    if (p->stacked)
        snprintf(before, sizeof(before), "T%u %s ", step->thread + 1, place);
    else
        snprintf(before, sizeof(before), "%*s%s  ", (int)(label_width - etch_canvas_measure(&p->canvas, place)), "",
                 place);
    if (p->stacked)
        label_width = 1;
    if (label_width + 2 + indent > width / 2)
        indent = 0;
    struct etch_text_run runs[] = {{before, LOOK_DIM, 0},
                                   {"                ", LOOK_PLAIN, indent},
                                   {etch_picture_text(step, spare, sizeof(spare)),
                                    step_is_marked(p, step) ? LOOK_BOLD : LOOK_PLAIN, width * PICTURE_LINES},
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

        etch_picture_value(p, value, false, 0, text, sizeof(text));
        struct etch_text_run runs[] = {
            {known ? etch_render_string(p->sketch->variables[value->variable]->name) : "?", LOOK_VALUE, width},
            {"  ", LOOK_PLAIN, 0},
            {text, etch_picture_is_deciding(p, value) ? LOOK_CAUSE : LOOK_VALUE, 0}};

        lines += etch_canvas_flow(&p->canvas, x, y + lines, width, 2, runs, 3);
    }
    return lines;
}

static void draw_value_columns(struct picture *p, size_t i, unsigned *used)
{
    const Etch__SketchStep *step = p->sketch->steps[i];

    for (size_t k = 0; k < step->n_values; k++) {
        const Etch__SketchValue *value = step->values[k];
        char text[64];
        unsigned y;

        if (value->variable >= p->sketch->n_variables)
            continue;
        etch_picture_value(p, value, etch_picture_row_is_shared(p, i), step->thread, text, sizeof(text));
        y = p->step_y[i] > used[value->variable] ? p->step_y[i] : used[value->variable];
        etch_canvas_flow(&p->canvas, p->value_x[value->variable], y, p->value_width[value->variable], 0,
                         &(struct etch_text_run){text, etch_picture_is_deciding(p, value) ? LOOK_CAUSE : LOOK_VALUE, 0},
                         1);
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
    return etch_canvas_flow(&p->canvas, p->x[c] + p->lane, y, p->width[c] - p->lane - PICTURE_GAP, 0,
                            &(struct etch_text_run){text, LOOK_DIM, 0}, 1);
}

static unsigned draw_step(struct picture *p, size_t i, size_t c, unsigned y)
{
    const Etch__SketchStep *step = p->sketch->steps[i];
    unsigned x = p->x[c] + p->lane, width = p->width[c] - p->lane - PICTURE_GAP + (p->stacked ? 2 : 0), top = y;
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
            &(struct etch_text_run){step->note, step->failing ? LOOK_FAILURE : LOOK_PLAIN, PICTURE_NOTE}, 1);
    if (!p->value_columns)
        y += draw_inline_values(p, i, x + inset, y, width - inset);
    return y - top;
}

/* An arrow that must pass others in its own row gets a line above them. */
static bool row_has_target(const struct picture *p, size_t row)
{
    const Etch__Sketch *s = p->sketch;

    for (size_t k = 0; k < s->n_orders; k++)
        if (etch_picture_has_arrow(p, s->orders[k]) && etch_render_order_is_sound(s, s->orders[k]) &&
            p->model.row_of[s->orders[k]->after] == row)
            return true;
    return false;
}

void etch_picture_row(struct picture *p, size_t row, unsigned *used)
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
        if (p->value_columns)
            draw_value_columns(p, i, used);
    }
    for (size_t v = 0; p->value_columns && v < p->sketch->n_variables; v++)
        bottom = used[v] > bottom ? used[v] : bottom;
    if (last == SIZE_MAX)
        return;
    snprintf(number, sizeof(number), "%*zu%s", (int)etch_picture_digits(p->model.n_rows), row + 1,
             r->unordered ? "~" : "");
    etch_canvas_flow(&p->canvas, 1, p->step_y[p->model.order[r->first]], p->gutter - 1, 0,
                     &(struct etch_text_run){number, r->unordered ? LOOK_LOSS : LOOK_DIM, 0}, 1);
    if (r->unordered && p->stacked)
        for (unsigned y = p->step_y[p->model.order[r->first]] + 1; y < bottom; y++)
            etch_canvas_flow(&p->canvas, p->gutter - 2, y, 1, 0, &(struct etch_text_run){"~", LOOK_LOSS, 0}, 1);
    p->y = bottom;
}
