/* SPDX-License-Identifier: MIT */
/* The head of a picture: the failure, the runs, and the causes. */
#include "sketch/render/picture.h"
#include "sketch/render/sentence.h"

#include <stdio.h>
#include <string.h>

void etch_picture_head(struct picture *p)
{
    static const char *const sources[] = {"none", "pt", "soft", "vpt", "lab"};
    const Etch__Sketch *s = p->sketch;
    const Etch__Place *place = etch_render_place(s->failing_place);
    const char *dot = p->canvas.unicode ? " · " : " - ";
    char headline[512], where[512] = "", runs[128], how[256], round[64] = "", sentence[2048];
    unsigned left, right;

    etch_render_headline(s, headline, sizeof(headline));
    etch_render_runs(s, runs, sizeof(runs));
    if (place->line)
        snprintf(where, sizeof(where), "  %s:%u", etch_render_basename(place->file), place->line);
    if (s->round)
        snprintf(round, sizeof(round), "%sround %u (%s%u)", dot, s->round,
                 p->canvas.unicode ? "σ=" : "sigma=", s->sigma);
    snprintf(how, sizeof(how), "%s%ssource %s%s", runs, dot,
             (unsigned)s->source < sizeof(sources) / sizeof(sources[0]) ? sources[s->source] : "unknown", round);
    struct etch_text_run title[] = {
        {"etch  ", LOOK_DIM, 0}, {headline, s->failing_runs ? LOOK_FAILURE : LOOK_BOLD, 0}, {where, LOOK_BOLD, 0}};
    struct etch_text_run facts = {how, LOOK_DIM, 0};

    left = 6 + etch_canvas_measure(&p->canvas, headline) + etch_canvas_measure(&p->canvas, where);
    right = etch_canvas_measure(&p->canvas, how);
    if (left + right + 5 <= p->canvas.width)
        etch_canvas_flow(&p->canvas, p->canvas.width - 1 - right, p->y, right, 0, &facts, 1);
    etch_picture_flow(p, 1, p->canvas.width - 1, 6, title, 3);
    if (left + right + 5 > p->canvas.width)
        etch_picture_flow(p, 7, p->canvas.width - 8, 0, &facts, 1);
    p->y++;
    if (etch_render_string(s->input)[0]) {
        snprintf(sentence, sizeof(sentence), "Input: %.1000s", s->input);
        etch_picture_write(p, LOOK_DIM, 0, sentence);
    }
    etch_render_sentence(s, sentence, sizeof(sentence));
    if (sentence[0]) {
        etch_picture_write(p, LOOK_BOLD, 0, sentence);
        p->y++;
    }
}

void etch_picture_letter(size_t shown, char letter[2])
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
    char letter[2], counts[256], f[64];

    etch_picture_letter(shown, letter);
    etch_render_counts(q, counts, sizeof(counts));
    if (q->experiment && !q->failing && !q->passing)
        f[0] = '\0';
    else if (p->all && q->f_hi > 0)
        snprintf(f, sizeof(f), "   F %.2f (%.2f to %.2f)", q->f, q->f_lo, q->f_hi);
    else
        snprintf(f, sizeof(f), "   F %.2f", q->f);
    struct etch_text_run mark = {letter, LOOK_CAUSE, 0}, kind = {etch_render_string(q->kind), LOOK_DIM, kind_width};
    struct etch_text_run text = {etch_render_string(q->text), LOOK_BOLD, width * PICTURE_LINES};
    struct etch_text_run numbers[] = {{counts, LOOK_PLAIN, 0}, {f, LOOK_PLAIN, 0}};
    unsigned need = (unsigned)strlen(counts) + (unsigned)strlen(f);
    bool one_line = text_width + 3 + need <= width;

    etch_canvas_flow(&p->canvas, x, p->y, 2, 0, &mark, 1);
    etch_canvas_flow(&p->canvas, x + 2, p->y, kind_width, 0, &kind, 1);
    if (one_line)
        etch_canvas_flow(&p->canvas, text_x + text_width + 3, p->y, need, 0, numbers, 2);
    etch_picture_flow(p, text_x, one_line ? text_width : width, 2, &text, 1);
    if (!one_line)
        etch_picture_flow(p, text_x, width, 2, numbers, 2);
}

void etch_picture_causes(struct picture *p)
{
    bool cause = etch_render_has_cause(p->sketch);
    unsigned kind_width = longest_kind(p), text_width = longest_cause(p);
    char more[128];

    if ((!p->sketch->compared && !cause) || !p->sketch->failing_runs)
        return;
    if (!p->model.n_shown) {
        etch_picture_write(p, LOOK_BOLD, 0, "No predictor separates failing runs from passing runs yet.");
        p->y++;
        return;
    }
    if (!cause)
        etch_picture_write(p, LOOK_BOLD, 0, "No strong predictor yet; the best hints:");
    else
        etch_canvas_flow(&p->canvas, 1, p->y, 6, 0, &(struct etch_text_run){"CAUSE", LOOK_CAUSE, 0}, 1);
    for (size_t i = 0; i < p->model.n_shown; i++)
        draw_predictor(p, i, cause ? 8 : 3, kind_width, text_width);
    if (p->model.unshown) {
        snprintf(more, sizeof(more), "%zu more with --all", p->model.unshown);
        etch_picture_flow(p, cause ? 10 : 5, p->canvas.width - 10, 0, &(struct etch_text_run){more, LOOK_DIM, 0}, 1);
    }
    p->y++;
}
