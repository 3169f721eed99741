/* SPDX-License-Identifier: MIT */
/* The sketch as one HTML file. Style and script are part of it and are the only ones that its policy lets run, by their
 * hashes: even text that slipped through the escaping could neither run nor load anything. */
#include "sketch/render/html.h"
#include "sketch/render/highlight.h"
#include "sketch/render/sentence.h"
#include "sketch/render/stack.h"
#include "sketch/render/unordered.h"
#include "sketch/render_html_css.h"
#include "sketch/render_html_js.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PANELS_MAX 400u /* steps whose panels are rendered from the start */

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

void etch_page_uri(struct etch_page *page, const char *path)
{
    for (path = etch_render_string(path); *path; path++) {
        unsigned char c = (unsigned char)*path;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("/-._~+", c))
            etch_text_char(&page->out, (char)c);
        else
            etch_page_write(page, "%%%02X", c);
    }
}

/* A long name breaks where the source would: behind -> and a dot. */
void etch_page_name(struct etch_page *page, const char *name)
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

/* A browser may break a line after any hyphen. */
static void put_piece(struct etch_page *page, const char *text, size_t size)
{
    char part[512];
    const char *arrow = memmem(text, size, "->", 2);

    if (arrow) {
        put_piece(page, text, (size_t)(arrow - text));
        etch_page_write(page, "<span class=\"nowrap\">-&#62;</span>");
        put_piece(page, arrow + 2, size - 2 - (size_t)(arrow - text));
        return;
    }

    while (size) {
        size_t n = size < sizeof(part) ? size : sizeof(part) - 1;

        while (n < size && n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--; /* not within a character */
        snprintf(part, sizeof(part), "%.*s", (int)n, text);
        etch_page_escape(page, part);
        text += n;
        size -= n;
    }
}

void etch_page_text(struct etch_page *page, const char *text)
{
    text = etch_render_string(text);
    put_piece(page, text, strlen(text));
}

void etch_page_source(struct etch_page *page, const char *text)
{
    static const char *const class_of[] = {[ETCH_KEYWORD] = "k", [ETCH_NUMBER] = "n",    [ETCH_STRING] = "s",
                                           [ETCH_COMMENT] = "c", [ETCH_DIRECTIVE] = "p", [ETCH_CALL] = "f"};
    size_t size;

    for (; *text; text += size) {
        enum etch_highlight kind = etch_highlight_next(text, &size);

        if (kind != ETCH_PLAIN)
            etch_page_write(page, "<i class=\"%s\">", class_of[kind]);
        put_piece(page, text, size);
        if (kind != ETCH_PLAIN)
            etch_page_write(page, "</i>");
    }
}

bool etch_page_is_picked(const struct etch_page *page, size_t predictor)
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
    at = etch_page_is_picked(page, predictor) ? before : page->model.n_shown + predictor - before;
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

static void put_command(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;

    if (!s->n_command && !etch_render_string(s->input)[0])
        return;
    etch_page_write(page, "<p class=\"facts\">This run: <code>");
    for (size_t i = 0; i < s->n_command; i++) {
        etch_page_write(page, i ? " " : "");
        etch_page_escape(page, s->command[i]);
    }
    if (etch_render_string(s->input)[0]) {
        etch_page_write(page, "</code> \u00b7 input <code>");
        etch_page_escape(page, s->input);
    }
    etch_page_write(page, "</code></p>\n");
}

/* How it was recorded, behind a fold: readers want the cause. */
static void put_about(struct etch_page *page)
{
    static const char *const sources[] = {"none", "pt", "soft", "vpt", "lab"};
    const Etch__Sketch *s = page->sketch;

    etch_page_write(page, "<details class=\"about\"><summary>How it was recorded</summary><dl>");
    etch_page_write(page, "<dt>control flow</dt><dd>source %s</dd>",
                    (unsigned)s->source < sizeof(sources) / sizeof(sources[0]) ? sources[s->source] : "unknown");
    if (s->round)
        etch_page_write(page, "<dt>watched</dt><dd>round %u, the %u nearest statements (\u03c3=%u)</dd>", s->round,
                        s->sigma, s->sigma);
    if (etch_render_string(s->program)[0]) {
        etch_page_write(page, "<dt>program</dt><dd>");
        etch_page_escape(page, s->program);
        etch_page_write(page, "</dd>");
    }
    if (s->build_id.len)
        etch_page_write(page, "<dt>build</dt><dd><code>");
    for (size_t i = 0; i < s->build_id.len && i < 64; i++)
        etch_page_write(page, "%02x", s->build_id.data[i]);
    etch_page_write(page, "%s</dl></details>\n", s->build_id.len ? "</code></dd>" : "");
}

static void put_header(struct etch_page *page)
{
    const Etch__Sketch *s = page->sketch;
    const Etch__Place *place = etch_render_place(s->failing_place);
    char headline[512], runs[128], sentence[2048], what[2048];
    size_t claim;

    etch_render_headline(s, headline, sizeof(headline));
    etch_render_runs(s, runs, sizeof(runs));
    claim = etch_render_sentence(s, sentence, sizeof(sentence));
    etch_page_write(page, "<header>\n<h1%s>", s->failing_runs ? "" : " class=\"calm\"");
    etch_page_escape(page, headline);
    if (place->line) {
        etch_page_write(page, " <span class=\"place\">");
        etch_page_escape(page, etch_render_basename(place->file));
        etch_page_write(page, ":%u</span>", place->line);
    }
    etch_page_write(page, "</h1>\n");
    if (sentence[0]) {
        snprintf(what, sizeof(what), "%.*s", (int)claim, sentence);
        etch_page_write(page, "<p class=\"sentence\">");
        etch_page_text(page, what);
        etch_page_write(page, "<span class=\"claim\">");
        etch_page_text(page, sentence + claim);
        etch_page_write(page, "</span></p>\n");
    }
    etch_page_write(page, "<p class=\"facts\"><strong>%s</strong></p>\n", runs);
    put_command(page);
    etch_page_write(page, "</header>\n");
}

/* ---- Stacks ---- */

static void put_frame(struct etch_page *page, const Etch__SketchStack *stack, size_t number)
{
    const Etch__Place *place = etch_render_place(stack->frames[number]);
    char function[128];

    etch_page_write(page, "<li value=\"%zu\"><code>", number);
    etch_page_escape(page, etch_render_function(place, function, sizeof(function)));
    etch_page_write(page, "(");
    etch_page_escape(page, etch_render_arguments(stack, number));
    etch_page_write(page, ")</code> <span class=\"place\">");
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
        put_frame(page, stack, view.shown[i]);
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
    etch_page_legend(page);
    put_about(page);
    etch_page_slice(page);
}

/* With many steps the browser gets the panels as text, and the script takes out the one that is wanted. The text has no
 * end tag of a script: text from outside is escaped. */
static void put_panels(struct etch_page *page)
{
    bool many = page->model.n_steps > PANELS_MAX;

    if (!page->model.n_steps)
        return;
    page->out.failed |= many && !etch_page_find_twins(page);
    etch_page_write(page, "<section class=\"panels\">\n<h2>Evidence, step by step</h2>\n%s",
                    many ? "<script type=\"text/plain\" id=\"texts\">\n" : "");
    for (size_t i = 0; i < page->model.n_steps; i++)
        etch_page_panel(page, page->model.order[i]);
    etch_page_write(page, "%s</section>\n", many ? "</script>\n" : "");
}

char *etch_render_html(const Etch__Sketch *sketch, const struct etch_render_html *options, size_t *size)
{
    struct etch_page page = {.sketch = sketch, .options = options};

    if (etch_render_model_make(&page.model, sketch, false))
        return NULL;
    page.out.failed = etch_render_lanes_make(&page.lanes, &page.model) < 0;
    put_document_head(&page);
    put_header(&page);
    etch_page_causes(&page);
    if (!page.out.failed)
        etch_page_picture(&page);
    put_stacks(&page);
    put_foot(&page);
    put_panels(&page);
    etch_page_write(&page, "<section class=\"chain\" id=\"chain\" tabindex=\"-1\" hidden></section>\n<script>");
    etch_text_bytes(&page.out, (const char *)render_html_js, sizeof(render_html_js) - 1);
    etch_page_write(&page, "</script>\n</body>\n</html>\n");
    etch_text_char(&page.out, '\0');
    free(page.twins);
    etch_render_lanes_release(&page.lanes);
    etch_render_model_release(&page.model);
    if (page.out.failed) {
        free(page.out.v);
        return NULL;
    }
    *size = page.out.n - 1;
    return page.out.v;
}
