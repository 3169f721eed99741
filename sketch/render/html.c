/* SPDX-License-Identifier: MIT */
/* The sketch as one HTML file. Style and script are part of it and are the only ones that its policy lets run, by their
 * hashes: even text that slipped through the escaping could neither run nor load anything. */
#include "sketch/render/html.h"
#include "sketch/render/sentence.h"
#include "sketch/render/stack.h"
#include "sketch/render/unordered.h"
#include "sketch/render_html_css.h"
#include "sketch/render_html_js.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void etch_page_write(struct etch_page *page, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    etch_text_bytes(&page->out, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void etch_page_escape(struct etch_page *page, const char *text)
{
    text = etch_render_string(text);
    while (*text) {
        uint32_t rune = etch_utf8_next(&text);

        if (rune == '&' || rune == '<' || rune == '>' || rune == '"' || rune == '\'')
            etch_page_write(page, "&#%u;", rune);
        else if (rune < 0x20 && rune != '\t' && rune != '\n')
            etch_render_put_rune(&page->out, 0x2400 + rune);
        else if ((rune >= 0x7f && rune < 0xa0) || etch_rune_is_invisible(rune))
            etch_render_put_rune(&page->out, 0xfffd);
        else
            etch_render_put_rune(&page->out, rune);
    }
}

/* The picture marks the predictor. Predictors that are not picked are behind a fold. */
static bool is_picked(const struct etch_page *page, size_t predictor)
{
    for (size_t i = 0; i < page->model.n_shown; i++)
        if (page->model.shown[i] == predictor)
            return true;
    return false;
}

void etch_page_letter(struct etch_page *page, size_t predictor)
{
    size_t before = 0, at;

    for (size_t i = 0; i < page->model.n_shown; i++)
        before += page->model.shown[i] < predictor;
    at = is_picked(page, predictor) ? before : page->model.n_shown + predictor - before;
    etch_page_write(page, "<span class=\"letter\">");
    if (at < 26)
        etch_page_write(page, "%c", 'A' + (int)at);
    else
        etch_page_write(page, "%zu", at + 1);
    etch_page_write(page, "</span>");
}

/* ---- Head ---- */

static unsigned hex_digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* A policy's source expression from a SHA-256 in hexadecimal. */
static void put_hash(struct etch_page *page, const char *hex)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[33] = {0};

    for (size_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
    etch_page_write(page, "'sha256-");
    for (size_t i = 0; i < 33; i += 3) {
        unsigned group = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];

        etch_page_write(page, "%c%c%c%c", digits[group >> 18], digits[group >> 12 & 63], digits[group >> 6 & 63],
                        i == 30 ? '=' : digits[group & 63]);
    }
    etch_page_write(page, "'");
}

static void put_document_head(struct etch_page *page)
{
    char headline[512];

    etch_render_headline(page->sketch, headline, sizeof(headline));
    etch_page_write(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ");
    put_hash(page, render_html_css_sha256);
    etch_page_write(page, "; script-src ");
    put_hash(page, render_html_js_sha256);
    etch_page_write(page, "; base-uri 'none'; form-action 'none'\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    etch_page_escape(page, headline);
    etch_page_write(page, " - etch</title>\n<style>");
    etch_text_bytes(&page->out, (const char *)render_html_css, sizeof(render_html_css) - 1);
    etch_page_write(page, "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#picture\">To the picture</a>\n");
}

static void put_header(struct etch_page *page)
{
    static const char *const sources[] = {"none", "pt", "soft", "vpt", "lab"};
    const Etch__Sketch *s = page->sketch;
    const Etch__Place *place = etch_render_place(s->failing_place);
    char headline[512], runs[128], sentence[2048];

    etch_render_headline(s, headline, sizeof(headline));
    etch_render_runs(s, runs, sizeof(runs));
    etch_render_sentence(s, sentence, sizeof(sentence));
    etch_page_write(page, "<header>\n<h1%s>", s->failing_runs ? "" : " class=\"calm\"");
    etch_page_escape(page, headline);
    if (place->line) {
        etch_page_write(page, " <span class=\"place\">");
        etch_page_escape(page, etch_render_basename(place->file));
        etch_page_write(page, ":%u</span>", place->line);
    }
    etch_page_write(page, "</h1>\n<p class=\"facts\"><strong>%s</strong> \u00b7 source %s", runs,
                    (unsigned)s->source < sizeof(sources) / sizeof(sources[0]) ? sources[s->source] : "unknown");
    if (s->round)
        etch_page_write(page, " \u00b7 round %u (\u03c3=%u)", s->round, s->sigma);
    if (etch_render_string(s->program)[0]) {
        etch_page_write(page, " \u00b7 ");
        etch_page_escape(page, s->program);
    }
    etch_page_write(page, "</p>\n");
    if (sentence[0]) {
        etch_page_write(page, "<p class=\"sentence\">");
        etch_page_escape(page, sentence);
        etch_page_write(page, "</p>\n");
    }
    etch_page_write(page, "</header>\n");
}

/* ---- Causes ---- */

static void put_cause(struct etch_page *page, size_t i, bool top)
{
    const Etch__Predictor *p = page->sketch->predictors[i];
    char counts[256];

    etch_render_counts(p, counts, sizeof(counts));
    etch_page_write(page,
                    "<li%s><a class=\"cause\" id=\"cause-%zu\" href=\"#cause-%zu\" "
                    "title=\"precision %.3f, recall %.3f, F between %.2f and %.2f; show its steps only\">",
                    top ? " class=\"top\"" : "", i, i, p->precision, p->recall, p->f_lo, p->f_hi);
    etch_page_letter(page, i);
    etch_page_write(page, "<span>");
    etch_page_escape(page, p->kind);
    if (etch_render_string(p->pattern)[0]) {
        etch_page_write(page, " <small class=\"soft\">");
        etch_page_escape(page, p->pattern);
        etch_page_write(page, "</small>");
    }
    etch_page_write(page, "</span><strong>");
    etch_page_escape(page, p->text);
    etch_page_write(page, "</strong><span class=\"counts\">%s</span><span class=\"counts\">F %.2f</span></a></li>\n",
                    counts, p->f);
}

static void put_other_causes(struct etch_page *page)
{
    if (!page->model.unshown)
        return;
    etch_page_write(page, "<details><summary>%zu more</summary><ol>\n", page->model.unshown);
    for (size_t i = 0; i < page->sketch->n_predictors; i++)
        if (!is_picked(page, i))
            put_cause(page, i, false);
    etch_page_write(page, "</ol></details>\n");
}

static void put_causes(struct etch_page *page)
{
    bool cause = etch_render_has_cause(page->sketch);

    if ((!page->sketch->compared && !cause) || !page->sketch->failing_runs)
        return;
    etch_page_write(page, "<section class=\"causes\">\n<h2>%s</h2>\n<ol>\n",
                    cause && page->sketch->predictors[0]->experiment ? "Cause, by experiment"
                    : cause               ? "Cause: what failing runs do and passing runs do not"
                    : page->model.n_shown ? "No strong predictor yet; the best hints"
                                          : "No predictor separates failing runs from passing runs yet");
    for (size_t i = 0; i < page->model.n_shown; i++)
        put_cause(page, page->model.shown[i], cause);
    etch_page_write(page, "</ol>\n");
    put_other_causes(page);
    etch_page_write(page, "<a class=\"all\" href=\"#_\">Show all steps</a>\n</section>\n");
}

/* A long name breaks where the source would: behind -> and a dot. */
static void put_name(struct etch_page *page, const char *name)
{
    char part[512];

    name = etch_render_string(name);
    while (*name) {
        size_t n = strcspn(name, ">.");

        n += name[n] != '\0';
        n = n < sizeof(part) ? n : sizeof(part) - 1;
        snprintf(part, sizeof(part), "%.*s", (int)n, name);
        etch_page_escape(page, part);
        etch_page_write(page, "<wbr>");
        name += n;
    }
}

/* ---- Picture ---- */

static void put_table_head(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;

    etch_page_write(page, "<thead><tr><th scope=\"col\"><span class=\"soft\">time \u2193</span></th>");
    for (size_t c = 0; c < page->model.n_columns; c++) {
        const Etch__SketchThread *t = s->threads[page->model.columns[c]];

        etch_page_write(page, "<th scope=\"col\"%s>T%zu ", t->failing ? " class=\"failing\"" : "",
                        page->model.columns[c] + 1);
        etch_page_escape(page, t->name);
        etch_page_write(page, "%s<small>", t->failing ? " \u2717 fails" : "");
        if (etch_render_string(t->made_by)[0] && strcmp(t->made_by, etch_render_string(t->name)) != 0) {
            etch_page_write(page, "made by ");
            etch_page_escape(page, t->made_by);
        }
        etch_page_write(page, "</small></th>");
    }
    for (size_t v = 0; v < s->n_variables; v++) {
        etch_page_write(page, "<th scope=\"col\" class=\"variable\" title=\"at 0x%" PRIx64 "\"><span>",
                        s->variables[v]->address);
        put_name(page, s->variables[v]->name);
        etch_page_write(page, "</span></th>");
    }
    etch_page_write(page, "</tr></thead>\n");
}

/* The orders that lead to a step, each with its evidence on hover. The script draws the arrows from these. */
static void put_orders(struct etch_page *page, size_t i)
{
    const Etch__Sketch *s = page->sketch;

    etch_page_write(page, "<div class=\"chips\">");
    for (size_t k = 0; k < s->n_orders; k++) {
        const Etch__SketchOrder *o = s->orders[k];

        if (!etch_render_order_is_sound(s, o) || o->after != i)
            continue;
        etch_page_write(page, "<span class=\"chip%s\" tabindex=\"0\" data-from=\"%u\" data-to=\"%zu\" data-evidence=\"",
                        o->predictor && s->compared ? " because" : "", o->before + 1, i + 1);
        etch_page_escape(page, o->evidence);
        etch_page_write(page, "\">after T%u\u2019s %zu<span class=\"tip\" role=\"tooltip\">Proven: ",
                        s->steps[o->before]->thread + 1, page->model.row_of[o->before] + 1);
        etch_page_escape(page, o->evidence);
        etch_page_write(page, "</span></span>");
    }
    etch_page_write(page, "</div>");
}

static void put_step_classes(struct etch_page *page, const Etch__SketchStep *step)
{
    bool marked = false;

    for (size_t k = 0; k < step->n_predictors; k++)
        marked |= is_picked(page, step->predictors[k]);
    etch_page_write(page, "class=\"step%s%s\" data-causes=\"", marked ? " marked" : "",
                    step->failing ? " failing" : "");
    for (size_t k = 0; k < step->n_predictors; k++)
        etch_page_write(page, "%s%u", k ? " " : "", step->predictors[k]);
    etch_page_write(page, "\"");
}

static void put_step_text(struct etch_page *page, const Etch__SketchStep *step)
{
    const Etch__Place *place = etch_render_place(step->place);
    const char *text = etch_render_string(step->text);
    char function[128];

    etch_page_write(page, "<span class=\"place\">");
    if (place->line) {
        etch_page_escape(page, etch_render_basename(place->file));
        etch_page_write(page, ":%u", place->line);
    } else {
        etch_page_write(page, "?");
    }
    etch_page_write(page, "</span> <code class=\"d%u\">", step->depth < 4 ? step->depth : 4);
    text += strspn(text, " \t");
    if (*text) {
        etch_page_escape(page, text);
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

static void put_step(struct etch_page *page, size_t i)
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
    put_step_text(page, step);
    if (etch_render_string(step->note)[0]) {
        etch_page_write(page, "<span class=\"note\">");
        etch_page_escape(page, step->note);
        etch_page_write(page, "</span>");
    }
    etch_page_write(page, "</a>");
    put_orders(page, i);
}

static void put_value(struct etch_page *page, const Etch__SketchValue *value, const Etch__SketchStep *step, bool shared)
{
    const char *evidence = etch_render_string(value->evidence);
    char number[24];

    etch_render_value(value, number);
    etch_page_write(page, "<span class=\"value%s%s\" tabindex=\"0\">",
                    value->deciding && page->sketch->compared ? " deciding" : "", number[0] == '?' ? " unknown" : "");
    if (shared)
        etch_page_write(page, "T%u ", step->thread + 1);
    etch_page_write(page, "%s %s<span class=\"tip\" role=\"tooltip\">%s%s", value->write ? "wrote" : "read", number,
                    value->write ? "Written" : "Read", number[0] == '?' ? ", value not known" : "");
    etch_page_write(page, evidence[0] ? ": " : "");
    etch_page_escape(page, evidence);
    etch_page_write(page, "</span></span> ");
}

static void put_row_values(struct etch_page *page, const struct etch_render_row *row, size_t variable)
{
    etch_page_write(page, "<td class=\"variable\" data-label=\"");
    etch_page_escape(page, page->sketch->variables[variable]->name);
    etch_page_write(page, " \">");
    for (size_t k = 0; k < row->n; k++) {
        const Etch__SketchStep *step = page->sketch->steps[page->model.order[row->first + k]];

        for (size_t j = 0; j < step->n_values; j++)
            if (step->values[j]->variable == variable)
                put_value(page, step->values[j], step, row->unordered);
    }
    etch_page_write(page, "</td>");
}

static void put_row(struct etch_page *page, size_t r)
{
    const struct etch_render_row *row = &page->model.rows[r];

    etch_page_write(
        page, "<tr%s><td class=\"number\">%zu%s</td>", row->unordered ? " class=\"unordered\"" : "", r + 1,
        row->unordered ? " <span class=\"doubt\" title=\"unordered: nothing proves which came first\">~</span>" : "");
    for (size_t c = 0; c < page->model.n_columns; c++) {
        bool open = false;

        for (size_t k = 0; k < row->n; k++) {
            size_t i = page->model.order[row->first + k];

            if (etch_render_column(&page->model, i) != c)
                continue;
            if (!open) {
                etch_page_write(page, "<td class=\"thread\" data-label=\"T%zu ", page->model.columns[c] + 1);
                etch_page_escape(page, page->sketch->threads[page->model.columns[c]]->name);
                etch_page_write(page, "\">");
                open = true;
            }
            put_step(page, i);
        }
        etch_page_write(page, open ? "</td>" : "<td></td>");
    }
    for (size_t v = 0; v < page->sketch->n_variables; v++)
        put_row_values(page, row, v);
    etch_page_write(page, "</tr>\n");
}

static void put_picture(struct etch_page *page)
{
    if (!page->model.n_columns)
        return;
    etch_page_write(
        page, "<main class=\"picture\" id=\"picture\">\n<svg class=\"wires\" aria-hidden=\"true\"></svg>\n<table>\n");
    put_table_head(page);
    etch_page_write(page, "<tbody>\n");
    for (size_t r = 0; r < page->model.n_rows; r++)
        put_row(page, r);
    etch_page_write(page, "</tbody>\n</table>\n</main>\n");
}

/* ---- Stacks ---- */

static void put_frame(struct etch_page *page, const Etch__Place *place, size_t number)
{
    char function[128];

    etch_page_write(page, "<li value=\"%zu\"><code>", number);
    etch_page_escape(page, etch_render_function(place, function, sizeof(function)));
    etch_page_write(page, "()</code> <span class=\"place\">");
    etch_page_escape(page, etch_render_basename(place->file));
    etch_page_write(page, ":%u</span></li>\n", place->line);
}

static void put_stack(struct etch_page *page, const Etch__SketchStack *stack)
{
    struct etch_stack_view view;
    char title[600];

    etch_render_stack_view(stack, &view);
    etch_render_stack_title(page->sketch, stack, title, sizeof(title));
    etch_page_write(page, "<div class=\"stack\"><h3>");
    etch_page_escape(page, title);
    etch_page_write(page, "</h3><ol start=\"0\">\n");
    for (size_t i = 0; i < view.n; i++) {
        if (i == view.gap)
            etch_page_write(page, "<li class=\"soft gap\">%zu more</li>\n", view.cut);
        put_frame(page, etch_render_place(stack->frames[view.shown[i]]), view.shown[i]);
    }
    etch_page_write(page, "</ol></div>\n");
}

static void put_stacks(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;

    if (!s->n_stacks)
        return;
    etch_page_write(page, "<section class=\"stacks\">\n<h2>%s</h2>\n",
                    s->n_stacks > 1 ? "Where the threads stood" : "Where it stood");
    for (size_t i = 0; i < s->n_stacks; i++)
        put_stack(page, s->stacks[i]);
    etch_page_write(page, "</section>\n");
}

/* ---- Foot ---- */

static void put_item(struct etch_page *page, bool doubt, const char *before, const char *text)
{
    etch_page_write(page, "<li class=\"%s\">%s", doubt ? "doubt" : "soft", before);
    etch_page_escape(page, text);
    etch_page_write(page, "</li>\n");
}

static void put_unordered(void *context, const char *sentence)
{
    put_item(context, true, "", sentence);
}

static void put_doubts(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;
    char loss[600];

    for (size_t r = 0, reported = 0; r < page->model.n_rows && !reported; r++)
        if (page->model.rows[r].unordered) {
            put_item(page, true, "", "~ steps in one row are unordered. Nothing proves which came first.");
            reported = 1;
        }
    etch_render_unordered(s, page->model.row_of, put_unordered, page);
    for (size_t i = 0; i < s->n_losses; i++) {
        etch_render_loss(s->losses[i], loss, sizeof(loss));
        put_item(page, true, "Lost: ", loss);
    }
    for (size_t i = 0; i < s->n_conflicts; i++)
        put_item(page, true, "Contradiction: ", s->conflicts[i]->text);
    for (size_t i = 0; i < s->n_notes; i++)
        put_item(page, true, "", s->notes[i]);
    for (size_t i = 0; i < s->n_steps; i++)
        if (s->steps[i]->thread >= s->n_threads) {
            put_item(page, true, "", "Some steps belong to no known thread and are not drawn.");
            break;
        }
}

static void put_foot(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;

    etch_page_write(page, "<ul class=\"foot\">\n");
    put_doubts(page);
    if (!etch_render_has_loss(s) && s->failing_runs)
        put_item(page, false, "", "Nothing was lost.");
    for (size_t i = 0; i < s->n_threads; i++) {
        bool used = false;

        for (size_t c = 0; c < page->model.n_columns; c++)
            used |= page->model.columns[c] == i;
        if (used)
            continue;
        etch_page_write(page, "<li class=\"soft\">T%zu ", i + 1);
        etch_page_escape(page, s->threads[i]->name);
        etch_page_write(page, " has no step that matters here.</li>\n");
    }
    if (s->other_failures)
        etch_page_write(page, "<li class=\"soft\">Failing runs of other bugs, left out: %u.</li>\n", s->other_failures);
    if (s->slice_statements)
        etch_page_write(page, "<li class=\"soft\">Slice %u statements, %u executed, %zu shown.</li>\n",
                        s->slice_statements, s->executed_statements, s->n_steps);
    etch_page_write(page, "</ul>\n");
    etch_page_slice(page);
}

char *etch_render_html(const Etch__Sketch *sketch, const struct etch_render_html *options, size_t *size)
{
    struct etch_page page = {.sketch = sketch, .options = options};

    if (etch_render_model_make(&page.model, sketch, false))
        return NULL;
    put_document_head(&page);
    put_header(&page);
    put_causes(&page);
    put_picture(&page);
    put_stacks(&page);
    put_foot(&page);
    if (sketch->n_steps)
        etch_page_write(&page, "<section class=\"panels\">\n<h2>Evidence, step by step</h2>\n");
    for (size_t i = 0; i < page.model.n_steps; i++)
        etch_page_panel(&page, page.model.order[i]);
    etch_page_write(&page, "%s<script>", sketch->n_steps ? "</section>\n" : "");
    etch_text_bytes(&page.out, (const char *)render_html_js, sizeof(render_html_js) - 1);
    etch_page_write(&page, "</script>\n</body>\n</html>\n");
    etch_text_char(&page.out, '\0');
    etch_render_model_release(&page.model);
    if (page.out.failed) {
        free(page.out.v);
        return NULL;
    }
    *size = page.out.n - 1;
    return page.out.v;
}
