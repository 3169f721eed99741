/* SPDX-License-Identifier: MIT */
/* The picture of the HTML page: a lane for each thread that matters, a strip for the others, rows in time, values. */
#include "sketch/render/html.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    COLUMN_LANES = 3,  /* with more lanes, values stand in the rows */
    COLUMN_VALUES = 2, /* with more variables too */
    LONG_ROWS = 300,   /* from here on the browser lays out only what is in view */
};

/* ---- Values ---- */

static void put_passing(struct etch_page *page, const Etch__SketchStep *step, const Etch__SketchValue *value)
{
    const Etch__SketchPassingValue *seen = etch_render_passing_of(step, value);
    char text[96];

    if (!seen || !value->deciding)
        return;
    etch_render_passing_value(seen, text, sizeof(text));
    etch_page_write(page, " <span class=\"passing\">passing runs: %s</span>", text);
}

static bool is_linked(const struct etch_page *page, const Etch__SketchValue *v)
{
    return v->origin_case == ETCH__SKETCH_VALUE__ORIGIN_FROM && v->from < page->sketch->n_steps;
}

static void put_evidence(struct etch_page *page, const Etch__SketchValue *v)
{
    bool known = v->known_case == ETCH__SKETCH_VALUE__KNOWN_VALUE;

    etch_page_write(page, "%s%s%s", v->write ? "Written" : "Read", known ? "" : ", value not known",
                    etch_render_string(v->evidence)[0] ? ": " : "");
    etch_page_escape(page, v->evidence);
    if (is_linked(page, v))
        etch_page_write(page, ". Written by T%u at line %u: click", page->sketch->steps[v->from]->thread + 1,
                        etch_render_place(page->sketch->steps[v->from]->place)->line);
}

/* One value: a link to where it came from, with its evidence on hover. */
static void put_value(struct etch_page *page, size_t step_index, size_t k)
{
    const Etch__SketchStep *step = page->sketch->steps[step_index];
    const Etch__SketchValue *v = step->values[k];
    bool deciding = v->deciding && page->sketch->compared;
    char number[24];

    etch_render_value(v, number);
    etch_page_write(page, "<a class=\"value%s%s\" id=\"value-%zu-%zu\" href=\"#value-%zu-%zu\" data-step=\"%zu\"",
                    deciding ? " deciding" : "", number[0] == '?' ? " unknown" : "", step_index + 1, k, step_index + 1,
                    k, step_index + 1);
    if (is_linked(page, v))
        etch_page_write(page, " data-writer=\"%u\"", v->from + 1);
    if (page->is_long) {
        etch_page_write(page, " title=\"");
        put_evidence(page, v);
        etch_page_write(page, "\"");
    }
    etch_page_write(page, ">");
    if (v->variable < page->sketch->n_variables) {
        etch_page_write(page, "<span class=\"of\">");
        etch_page_name(page, page->sketch->variables[v->variable]->name);
        etch_page_write(page, "</span> ");
    }
    etch_page_write(page, "%s <b>%s</b>%s", v->write ? "wrote" : "read", number, v->recovered ? " ~" : "");
    if (!page->is_long) {
        etch_page_write(page, "<span class=\"tip\" role=\"tooltip\">");
        put_evidence(page, v);
        etch_page_write(page, "</span>");
    }
    etch_page_write(page, "</a>");
}

/* Below the step's text. Where values have columns, a narrow screen shows these instead. */
static void put_values(struct etch_page *page, size_t i)
{
    const Etch__SketchStep *step = page->sketch->steps[i];

    if (!step->n_values || page->value_columns)
        return;
    etch_page_write(page, "<div class=\"values\">");
    for (size_t k = 0; k < step->n_values; k++) {
        put_value(page, i, k);
        put_passing(page, step, step->values[k]);
        etch_page_write(page, " ");
    }
    etch_page_write(page, "</div>");
}

static void put_value_cell(struct etch_page *page, const struct etch_render_row *row, size_t variable)
{
    etch_page_write(page, "<div class=\"cell variable\" role=\"cell\">");
    for (size_t k = 0; k < row->n; k++) {
        size_t i = page->model.order[row->first + k];
        const Etch__SketchStep *step = page->sketch->steps[i];

        for (size_t j = 0; j < step->n_values; j++) {
            if (step->values[j]->variable != variable)
                continue;
            if (row->unordered)
                etch_page_write(page, "<small>T%u</small> ", step->thread + 1);
            put_value(page, i, j);
            put_passing(page, step, step->values[j]);
            etch_page_write(page, " ");
        }
    }
    etch_page_write(page, "</div>");
}

/* ---- Steps ---- */

/* The orders that lead to a step, each with its evidence on hover. The script draws the arrows from these. */
static void put_orders(struct etch_page *page, size_t i)
{
    const Etch__Sketch *s = page->sketch;
    bool open = false;

    for (size_t k = 0; k < s->n_orders; k++) {
        const Etch__SketchOrder *o = s->orders[k];

        if (o->after != i || !etch_render_order_is_sound(s, o))
            continue;
        etch_page_write(
            page, "%s<span class=\"chip%s\" tabindex=\"0\" data-from=\"%u\" data-to=\"%zu\" data-evidence=\"",
            open ? "" : "<div class=\"chips\">", o->predictor && s->compared ? " because" : "", o->before + 1, i + 1);
        open = true;
        etch_page_escape(page, o->evidence);
        etch_page_write(page, "\">after T%u\u2019s %zu<span class=\"tip\" role=\"tooltip\">Proven: ",
                        s->steps[o->before]->thread + 1, page->model.row_of[o->before] + 1);
        etch_page_escape(page, o->evidence);
        etch_page_write(page, "</span></span>");
    }
    if (open)
        etch_page_write(page, "</div>");
}

static bool is_marked(const struct etch_page *page, const Etch__SketchStep *step)
{
    bool marked = false;

    for (size_t k = 0; k < step->n_predictors; k++)
        marked |= etch_page_is_picked(page, step->predictors[k]);
    return marked;
}

static void put_step_classes(struct etch_page *page, const Etch__SketchStep *step)
{
    etch_page_write(page, "class=\"step%s%s\"", is_marked(page, step) ? " marked" : "",
                    step->failing ? " failing" : "");
    if (step->n_predictors)
        etch_page_write(page, " data-causes=\"");
    for (size_t k = 0; k < step->n_predictors; k++)
        etch_page_write(page, "%s%u", k ? " " : "", step->predictors[k]);
    if (step->n_predictors)
        etch_page_write(page, "\"");
}

static void put_step_text(struct etch_page *page, const Etch__SketchStep *step)
{
    const Etch__Place *place = etch_render_place(step->place);
    const char *text = etch_render_string(step->text);
    char function[128];

    if (place->line) {
        etch_page_write(page, "<span class=\"place\" title=\"");
        etch_page_escape(page, etch_render_basename(place->file));
        etch_page_write(page, ":%u\">", place->line);
        etch_page_escape(page, page->one_file ? "" : etch_render_basename(place->file));
        etch_page_write(page, "%s%u", page->one_file ? "" : ":", place->line);
    } else {
        etch_page_write(page, "<span class=\"place\">?");
    }
    etch_page_write(page, "</span> <code class=\"d%u\">", step->depth < 4 ? step->depth : 4);
    text += strspn(text, " \t");
    if (*text) {
        etch_page_source(page, text);
    } else {
        etch_page_write(page, "(no source) in ");
        etch_page_escape(page, etch_render_function(place, function, sizeof(function)));
    }
    etch_page_write(page, "</code>");
    if (step->count > 1)
        etch_page_write(page, " <span class=\"count\">%" PRIu64 "\u00d7</span>", step->count);
    if (step->failing)
        etch_page_write(page, " <span class=\"fail\">\u2717 fails here</span>");
}

/* `named`: the thread's name stands at the step, because the column does not say it. */
static void put_step(struct etch_page *page, size_t i, bool named)
{
    const Etch__SketchStep *step = page->sketch->steps[i];

    if (step->lost_before)
        etch_page_write(page, "<div class=\"lost\">lost: steps may be missing here</div>");
    etch_page_write(page, "<a id=\"at-%zu\" href=\"#step-%zu\" ", i + 1, i + 1);
    put_step_classes(page, step);
    etch_page_write(page, ">");
    for (size_t k = 0; k < page->model.n_shown; k++)
        if (etch_render_step_has_predictor(step, page->model.shown[k]))
            etch_page_letter(page, page->model.shown[k]);
    etch_page_write(page, "<span class=\"who%s\">T%u ", named ? " named" : "", step->thread + 1);
    if (step->thread < page->sketch->n_threads)
        etch_page_escape(page, page->sketch->threads[step->thread]->name);
    etch_page_write(page, " </span>");
    put_step_text(page, step);
    if (etch_render_string(step->note)[0]) {
        etch_page_write(page, "<span class=\"note\">");
        etch_page_escape(page, step->note);
        etch_page_write(page, "</span>");
    }
    etch_page_write(page, "</a>");
    put_values(page, i);
    put_orders(page, i);
}

/* ---- Rows ---- */

/* The row shows steps of bystanders alone, and nothing of a cause: it may be folded. */
static bool is_folded(const struct etch_page *page, size_t r)
{
    const struct etch_render_row *row = &page->model.rows[r];

    for (size_t k = 0; k < row->n; k++) {
        size_t i = page->model.order[row->first + k];

        if (etch_render_lane(&page->lanes, &page->model, i) != ETCH_LANE_STRIP ||
            is_marked(page, page->sketch->steps[i]))
            return false;
    }
    return true;
}

static void put_lane_cell(struct etch_page *page, size_t r, size_t lane)
{
    const struct etch_render_row *row = &page->model.rows[r];
    bool strip = lane == ETCH_LANE_STRIP;
    bool live = !strip && page->lanes.first[lane] <= r && r <= page->lanes.last[lane], any = false;

    for (size_t k = 0; k < row->n; k++)
        any |= etch_render_lane(&page->lanes, &page->model, page->model.order[row->first + k]) == lane;
    if (page->is_long && !any)
        return;
    etch_page_write(page, "<div class=\"cell thread%s%s c%zu\" role=\"cell\">", strip ? " strip" : "",
                    live ? " live" : "", strip ? page->lanes.n : lane);
    for (size_t k = 0; k < row->n; k++)
        if (etch_render_lane(&page->lanes, &page->model, page->model.order[row->first + k]) == lane)
            put_step(page, page->model.order[row->first + k], strip);
    etch_page_write(page, "</div>");
}

/* The highest likelihood of the row's steps, as a bar. */
static void put_margin(struct etch_page *page, const struct etch_render_row *row)
{
    double most = -1;

    for (size_t k = 0; k < row->n; k++) {
        const Etch__SketchStep *step = page->sketch->steps[page->model.order[row->first + k]];

        if (step->estimate_case == ETCH__SKETCH_STEP__ESTIMATE_LIKELIHOOD && step->likelihood > most)
            most = step->likelihood;
    }
    etch_page_write(page, "<div class=\"cell margin\" role=\"cell\">");
    if (most >= 0) {
        most = most > 1 ? 1 : most;
        etch_page_write(page,
                        "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
                        "width=\"%.0f\" height=\"10\"></rect></svg><span title=\"from here on, so many of 100 runs "
                        "fail\">%.0f&#160;%%</span>",
                        most * 100, most * 100);
    }
    etch_page_write(page, "</div>");
}

static void put_row(struct etch_page *page, size_t r)
{
    const struct etch_render_row *row = &page->model.rows[r];

    etch_page_write(
        page, "<div class=\"row%s%s\" role=\"row\"><div class=\"cell number\" role=\"cell\">%zu%s</div>",
        row->unordered ? " unordered" : "", page->lanes.n_strip && is_folded(page, r) ? " folded" : "", r + 1,
        row->unordered ? " <span class=\"doubt\" title=\"unordered: nothing proves which came first\">~</span>" : "");
    if (page->margin)
        put_margin(page, row);
    for (size_t lane = 0; lane < page->lanes.n; lane++)
        put_lane_cell(page, r, lane);
    if (page->lanes.n_strip)
        put_lane_cell(page, r, ETCH_LANE_STRIP);
    for (size_t v = 0; page->value_columns && v < page->sketch->n_variables; v++)
        put_value_cell(page, row, v);
    etch_page_write(page, "</div>\n");
}

/* Folded rows leave a line that says how many there are. */
static void put_rows(struct etch_page *page)
{
    for (size_t r = 0; r < page->model.n_rows; r++) {
        size_t n = 0;

        if (page->lanes.n_strip && is_folded(page, r) && (!r || !is_folded(page, r - 1))) {
            while (r + n < page->model.n_rows && is_folded(page, r + n))
                n++;
            etch_page_write(page, "<label class=\"gap\" for=\"others\">%zu step%s of other threads, row%s %zu", n,
                            n == 1 ? "" : "s", n == 1 ? "" : "s", r + 1);
            if (n > 1)
                etch_page_write(page, " to %zu", r + n);
            etch_page_write(page, "</label>\n");
        }
        put_row(page, r);
    }
}

/* ---- Head ---- */

static void put_thread_head(struct etch_page *page, size_t thread)
{
    const Etch__SketchThread *t = page->sketch->threads[thread];

    etch_page_write(page, "<div class=\"cell thread%s\" role=\"columnheader\" title=\"", t->failing ? " failing" : "");
    etch_page_escape(page, t->name);
    etch_page_write(page, "\"><span class=\"name\">T%zu ", thread + 1);
    etch_page_escape(page, t->name);
    etch_page_write(page, "</span><small>%s", t->failing ? "<b class=\"nowrap\">\u2717 fails</b> " : "");
    if (etch_render_string(t->made_by)[0] && strcmp(t->made_by, etch_render_string(t->name)) != 0) {
        etch_page_write(page, "made by ");
        etch_page_escape(page, t->made_by);
    }
    etch_page_write(page, "</small></div>");
}

static void put_head(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;

    etch_page_write(page, "<div class=\"row head\" role=\"row\"><div class=\"cell number\" "
                          "role=\"columnheader\"><small>time \u2193</small></div>");
    if (page->margin)
        etch_page_write(page,
                        "<div class=\"cell margin\" role=\"columnheader\" title=\"how likely a run fails from here "
                        "on, by experiment\"><small>fails</small></div>");
    for (size_t i = 0; i < page->lanes.n; i++)
        put_thread_head(page, page->lanes.threads[i]);
    if (page->lanes.n_strip)
        etch_page_write(page,
                        "<div class=\"cell thread strip\" role=\"columnheader\"><label for=\"others\">%zu other "
                        "thread%s</label></div>",
                        page->lanes.n_strip, page->lanes.n_strip == 1 ? "" : "s");
    for (size_t v = 0; page->value_columns && v < s->n_variables; v++) {
        etch_page_write(page, "<div class=\"cell variable\" role=\"columnheader\" title=\"at 0x%" PRIx64 "\">",
                        s->variables[v]->address);
        etch_page_name(page, s->variables[v]->name);
        etch_page_write(page, "</div>");
    }
    etch_page_write(page, "</div>\n");
}

void etch_page_picture(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;

    if (!page->model.n_columns)
        return;
    page->value_columns = page->lanes.n <= COLUMN_LANES && !page->lanes.n_strip && s->n_variables <= COLUMN_VALUES;
    page->is_long = page->model.n_rows > LONG_ROWS;
    page->value_columns &= !page->is_long;
    page->one_file = true;
    for (size_t i = 0; i < s->n_steps; i++)
        page->one_file &= strcmp(etch_render_string(etch_render_place(s->steps[i]->place)->file),
                                 etch_render_string(etch_render_place(s->steps[0]->place)->file)) == 0;
    for (size_t i = 0; i < s->n_steps; i++)
        page->margin |= s->steps[i]->estimate_case == ETCH__SKETCH_STEP__ESTIMATE_LIKELIHOOD;
    etch_page_write(page,
                    "<input type=\"checkbox\" id=\"others\" aria-label=\"show the other threads\"%s>\n"
                    "<main class=\"picture lanes-%zu values-%zu%s%s%s\" id=\"picture\" role=\"table\">\n"
                    "<svg class=\"wires\" aria-hidden=\"true\"></svg>\n",
                    page->lanes.n_strip ? "" : " hidden", page->lanes.n, page->value_columns ? s->n_variables : 0,
                    page->lanes.n_strip ? " has-strip" : "", page->margin ? " has-margin" : "",
                    page->is_long ? " long" : "");
    put_head(page);
    put_rows(page);
    etch_page_write(page, "</main>\n");
}
