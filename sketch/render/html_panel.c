/* SPDX-License-Identifier: MIT */
/* Behind a click on a step: where it is in the source, what is known about it and how, and why the slice has it. */
#include "sketch/render/html.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT_LINES = 4 };

static void put_place(struct etch_page *page, const Etch__Place *place)
{
    char function[128];

    if (!place->line) {
        etch_page_write(page, "<span class=\"doubt\">place not known</span>");
        return;
    }
    etch_page_write(page, "<code>");
    etch_page_escape(page, place->file);
    etch_page_write(page, ":%u", place->line);
    if (place->column)
        etch_page_write(page, ":%u", place->column);
    etch_page_write(page, "</code>");
    if (etch_render_string(place->function)[0]) {
        const char *brief = etch_render_function(place, function, sizeof(function));

        etch_page_write(page, " in <code");
        if (strcmp(brief, place->function) != 0) { /* the whole name on hover */
            etch_page_write(page, " title=\"");
            etch_page_escape(page, place->function);
            etch_page_write(page, "\"");
        }
        etch_page_write(page, ">");
        etch_page_escape(page, brief);
        etch_page_write(page, "()</code>");
    }
}

static void put_source_line(struct etch_page *page, uint32_t line, bool here, const char *text)
{
    etch_page_write(page, "%s%6u  ", here ? "<span class=\"here\">" : "", line);
    etch_page_source(page, text);
    etch_page_write(page, here ? "</span>\n" : "\n");
}

/* The lines around; the step's own line alone where the source is not at hand. */
static void put_context(struct etch_page *page, const Etch__SketchStep *step)
{
    const Etch__Place *place = etch_render_place(step->place);
    uint32_t first = place->line > CONTEXT_LINES ? place->line - CONTEXT_LINES : 1;
    bool own = etch_render_string(step->text)[0];

    if (!place->line || (!own && !page->options->source))
        return;
    etch_page_write(page, "<pre>");
    for (uint32_t i = 0; i <= 2 * CONTEXT_LINES && first + i >= first; i++) {
        uint32_t line = first + i;
        const char *text = NULL;

        if (page->options->source)
            text = page->options->source(page->options->source_context, etch_render_string(place->file), line);
        if (line == place->line && own && !text)
            text = step->text;
        if (text)
            put_source_line(page, line, line == place->line, text);
    }
    etch_page_write(page, "</pre>");
}

/* An absolute path opens in the editor, or as a file. */
static void put_editor(struct etch_page *page, const Etch__Place *place)
{
    if (etch_render_string(place->file)[0] != '/' || !place->line)
        return;
    etch_page_write(page, "<p class=\"open\">Open in <a href=\"vscode://file");
    etch_page_uri(page, place->file);
    etch_page_write(page, ":%u\">VS Code</a> or as <a href=\"file://", place->line);
    etch_page_uri(page, place->file);
    etch_page_write(page, "\">file</a></p>");
}

static void put_runs(struct etch_page *page, unsigned runs, const char *what)
{
    if (runs)
        etch_page_write(page, "<li>%u %s</li>", runs, what);
}

/* What the passing runs did here, beside what this run did. */
static void put_passing(struct etch_page *page, const Etch__SketchStep *step)
{
    const Etch__SketchPassing *p = step->passing;
    char text[96];

    if (!p)
        return;
    etch_page_write(page, "<section class=\"aside\"><h4>What passing runs did here</h4><ul>");
    put_runs(page, p->ran, p->ran == 1 ? "passing run came here" : "passing runs came here");
    put_runs(page, p->not_run, p->not_run == 1 ? "passing run did not" : "passing runs did not");
    put_runs(page, p->unknown, "unknown");
    for (size_t i = 0; i < p->n_values; i++) {
        const Etch__SketchPassingValue *v = p->values[i];

        etch_render_passing_value(v, text, sizeof(text));
        etch_page_write(page, "<li>%s <code>", v->write ? "wrote" : "read");
        etch_page_escape(page,
                         v->variable < page->sketch->n_variables ? page->sketch->variables[v->variable]->name : "?");
        etch_page_write(page, "</code>: <strong>%s</strong> <span class=\"soft\">in %u run%s</span></li>", text,
                        v->runs, v->runs == 1 ? "" : "s");
    }
    etch_page_write(page, "</ul></section>");
}

static void put_step_link(struct etch_page *page, size_t step);

static void put_values(struct etch_page *page, const Etch__SketchStep *step)
{
    for (size_t k = 0; k < step->n_values; k++) {
        const Etch__SketchValue *value = step->values[k];
        char number[24];

        etch_render_value(value, number);
        etch_page_write(page, "<dt>%s</dt><dd><code>", value->write ? "writes" : "reads");
        etch_page_escape(
            page, value->variable < page->sketch->n_variables ? page->sketch->variables[value->variable]->name : "?");
        etch_page_write(page, "</code> = <strong>%s</strong> <span class=\"soft\">",
                        number[0] == '?' ? "not known" : number);
        etch_page_escape(page, value->evidence);
        etch_page_write(page, "</span>");
        if (value->origin_case == ETCH__SKETCH_VALUE__ORIGIN_FROM && value->from < page->sketch->n_steps) {
            etch_page_write(page, " written by ");
            put_step_link(page, value->from);
        }
        etch_page_write(page, "</dd>");
    }
}

static void put_step_link(struct etch_page *page, size_t step)
{
    etch_page_write(page, "<a href=\"#step-%zu\">T%u\u2019s step %zu</a>", step + 1,
                    page->sketch->steps[step]->thread + 1, page->model.row_of[step] + 1);
}

static void put_order(struct etch_page *page, const char *word, size_t other, const char *evidence)
{
    etch_page_write(page, "<dt>%s</dt><dd>", word);
    put_step_link(page, other);
    etch_page_write(page, " <span class=\"soft\">");
    etch_page_escape(page, evidence);
    etch_page_write(page, "</span></dd>");
}

static void put_orders(struct etch_page *page, size_t i)
{
    const Etch__Sketch *s = page->sketch;
    const struct etch_render_row *row = &page->model.rows[page->model.row_of[i]];

    for (size_t k = 0; k < s->n_orders; k++) {
        const Etch__SketchOrder *o = s->orders[k];

        if (etch_render_order_is_sound(s, o) && o->after == i)
            put_order(page, "proven after", o->before, o->evidence);
        if (etch_render_order_is_sound(s, o) && o->before == i)
            put_order(page, "proven before", o->after, o->evidence);
    }
    for (size_t k = 0; k < s->n_unordered; k++) {
        const Etch__SketchUnordered *u = s->unordered[k];

        if (u->one < s->n_steps && u->other < s->n_steps && (u->one == i || u->other == i))
            put_order(page, "unordered with", u->one == i ? u->other : u->one, u->evidence);
    }
    for (size_t k = 0; k < row->n; k++)
        if (s->steps[page->model.order[row->first + k]]->thread != s->steps[i]->thread)
            put_order(page, "unordered with", page->model.order[row->first + k], "nothing proves which came first");
}

static void put_predictor(struct etch_page *page, size_t i)
{
    const Etch__Predictor *p = page->sketch->predictors[i];
    char counts[256];

    etch_render_counts(p, counts, sizeof(counts));
    etch_page_write(page, "<dt>");
    etch_page_letter(page, i);
    etch_page_write(page, "</dt><dd>");
    etch_page_escape(page, p->text);
    etch_page_write(page, " <span class=\"soft\">%s, F %.2f</span></dd>", counts, p->f);
}

/* Those of the picture; the others are in the fold of the causes, where a click shows this step. */
static void put_predictors(struct etch_page *page, const Etch__SketchStep *step)
{
    for (size_t k = 0; k < page->model.n_shown; k++)
        if (etch_render_step_has_predictor(step, page->model.shown[k]))
            put_predictor(page, page->model.shown[k]);
}

static const Etch__Statement *find_statement(const Etch__Sketch *sketch, uint32_t id)
{
    for (size_t i = 0; id && i < sketch->n_slice; i++)
        if (sketch->slice[i]->id == id)
            return sketch->slice[i];
    return NULL;
}

static void put_roles(struct etch_page *page, const Etch__Statement *statement)
{
    char role[64];

    for (size_t i = 0; i < statement->n_roles; i++) {
        etch_render_enum(&etch__statement_role__descriptor, (int)statement->roles[i], ' ', role);
        etch_page_write(page, "%s%s", i ? ", " : "", role);
    }
}

/* Why the slice has the step, and what it brought in. */
static void put_slice_part(struct etch_page *page, const Etch__SketchStep *step)
{
    const Etch__Sketch *s = page->sketch;
    const Etch__Statement *statement = find_statement(s, step->statement);

    etch_page_write(page, "<dt>slice</dt><dd>");
    if (!statement) {
        etch_page_write(page, "%s</dd>", step->statement ? "in the slice" : "not in the slice; found as it ran");
        return;
    }
    put_roles(page, statement);
    etch_page_write(page, ", %u from the failure", statement->distance);
    for (size_t i = 0; i < statement->n_because; i++) {
        const Etch__Statement *because = find_statement(s, statement->because[i]);

        if (!because)
            continue;
        etch_page_write(page, "<br>because of ");
        put_place(page, etch_render_place(because->place));
    }
    for (size_t i = 0; i < s->n_slice; i++)
        for (size_t k = 0; k < s->slice[i]->n_because; k++)
            if (s->slice[i]->because[k] == statement->id) {
                etch_page_write(page, "<br>brought in ");
                put_place(page, etch_render_place(s->slice[i]->place));
            }
    etch_page_write(page, "</dd>");
}

static int compare_places(const Etch__Place *a, const Etch__Place *b)
{
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return strcmp(etch_render_string(a->file), etch_render_string(b->file));
}

struct placed {
    const Etch__Place *place;
    size_t step;
};

static int by_place(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int order = compare_places(a->place, b->place);

    return order ? order : a->step < b->step ? -1 : a->step > b->step;
}

bool etch_page_find_twins(struct etch_page *page)
{
    size_t n = page->model.n_steps, first = 0;
    struct placed *list = calloc(n + 1, sizeof(*list));

    page->twins = calloc(n + 1, sizeof(*page->twins));
    if (!list || !page->twins) {
        free(list);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        list[i] = (struct placed){etch_render_place(page->sketch->steps[i]->place), i};
    qsort(list, n, sizeof(*list), by_place);
    for (size_t i = 0; i < n; i++) {
        first = compare_places(list[first].place, list[i].place) == 0 ? first : i;
        page->twins[list[i].step] = list[first].step;
    }
    free(list);
    return true;
}

/* The same lines are in the page once, if there are many steps. */
static void put_source(struct etch_page *page, size_t i)
{
    bool twin = page->twins && page->twins[i] != i;

    if (twin)
        etch_page_write(page, "<div class=\"side\" data-source=\"step-%zu\">", page->twins[i] + 1);
    else
        etch_page_write(page, "<div class=\"side\">");
    if (!twin)
        put_context(page, page->sketch->steps[i]);
    etch_page_write(page, "</div>");
}

void etch_page_panel(struct etch_page *page, size_t i)
{
    const Etch__SketchStep *step = page->sketch->steps[i];

    etch_page_write(page,
                    "<section class=\"panel\" id=\"step-%zu\" tabindex=\"-1\" aria-label=\"step %zu of T%u\">\n"
                    "<a class=\"close\" href=\"#_\" aria-label=\"close\">\u2715</a><h3>Step %zu of T%u ",
                    i + 1, page->model.row_of[i] + 1, step->thread + 1, page->model.row_of[i] + 1, step->thread + 1);
    if (step->thread < page->sketch->n_threads)
        etch_page_escape(page, page->sketch->threads[step->thread]->name);
    etch_page_write(page, "</h3>");
    put_place(page, etch_render_place(step->place));
    etch_page_write(page, "<div class=\"sides\">");
    put_source(page, i);
    put_passing(page, step);
    etch_page_write(page, "</div>");
    put_editor(page, etch_render_place(step->place));
    etch_page_write(page, "<dl>");
    if (etch_render_string(step->note)[0]) {
        etch_page_write(page, "<dt>here</dt><dd>");
        etch_page_escape(page, step->note);
        etch_page_write(page, "</dd>");
    }
    if (step->count > 1)
        etch_page_write(page, "<dt>ran</dt><dd>%" PRIu64 " times, folded</dd>", step->count);
    put_predictors(page, step);
    put_values(page, step);
    put_orders(page, i);
    put_slice_part(page, step);
    etch_page_write(page, "</dl>\n</section>\n");
}

static bool is_shown(const Etch__Sketch *sketch, uint32_t id)
{
    for (size_t i = 0; i < sketch->n_steps; i++)
        if (sketch->steps[i]->statement == id)
            return true;
    return false;
}

void etch_page_slice(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;

    if (!s->n_slice)
        return;
    etch_page_write(
        page, "<details class=\"slice\" id=\"slice\"><summary>The slice: every statement that may matter</summary>\n"
              "<table><thead><tr><th>from the failure</th><th>place</th><th>as</th><th>shown</th></tr></thead>\n"
              "<tbody>\n");
    for (size_t i = 0; i < s->n_slice; i++) {
        etch_page_write(page, "<tr><td>%u</td><td>", s->slice[i]->distance);
        put_place(page, etch_render_place(s->slice[i]->place));
        etch_page_write(page, "</td><td>");
        put_roles(page, s->slice[i]);
        etch_page_write(page, "</td><td>%s</td></tr>\n", is_shown(s, s->slice[i]->id) ? "yes" : "");
    }
    etch_page_write(page, "</tbody></table></details>\n");
}
