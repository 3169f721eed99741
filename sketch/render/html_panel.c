/* SPDX-License-Identifier: MIT */
/* Behind a click on a step: where it is in the source, what is known about it and how, and why the slice has it. */
#include "sketch/render/html.h"

#include <inttypes.h>
#include <stdio.h>

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
    etch_page_escape(page, text);
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
        etch_page_write(page, "</span></dd>");
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
    for (size_t k = 0; k < s->n_steps; k++)
        if (s->steps[k]->rank == s->steps[i]->rank && s->steps[k]->thread != s->steps[i]->thread)
            put_order(page, "unordered with", k, "nothing proves which came first");
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
    put_context(page, step);
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
