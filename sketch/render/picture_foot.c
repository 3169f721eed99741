/* SPDX-License-Identifier: MIT */
/* The foot of a picture: unordered steps, losses, contradictions, notes, and counts. */
#include "sketch/render/picture.h"
#include "sketch/render/stack.h"
#include "sketch/render/unordered.h"

#include <stdio.h>

static void draw_sentence(void *context, const char *sentence)
{
    etch_picture_write(context, LOOK_LOSS, 2, sentence);
}

static void draw_unordered(struct picture *p)
{
    for (size_t r = 0; r < p->model.n_rows; r++)
        if (p->model.rows[r].unordered) {
            etch_picture_write(p, LOOK_LOSS, 2,
                               "~ steps of one number are unordered. Nothing proves which came first.");
            break;
        }
    etch_render_unordered(p->sketch, p->model.row_of, draw_sentence, p);
}

static bool has_unknown_value(const Etch__Sketch *s)
{
    for (size_t i = 0; i < s->n_steps; i++)
        for (size_t k = 0; k < s->steps[i]->n_values; k++)
            if (s->steps[i]->values[k]->known_case != ETCH__SKETCH_VALUE__KNOWN_VALUE)
                return true;
    return false;
}

static bool has_recovered_value(const Etch__Sketch *s)
{
    for (size_t i = 0; i < s->n_steps; i++)
        for (size_t k = 0; k < s->steps[i]->n_values; k++)
            if (s->steps[i]->values[k]->recovered)
                return true;
    return false;
}

static bool has_tag_order(const struct picture *p)
{
    for (size_t k = 0; k < p->sketch->n_orders; k++)
        if (!etch_picture_has_arrow(p, p->sketch->orders[k]) &&
            etch_render_order_is_sound(p->sketch, p->sketch->orders[k]) &&
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
            etch_picture_write(p, LOOK_DIM, 0, "Nothing was lost.");
        return;
    }
    for (size_t i = 0; i < s->n_losses && i < 8; i++) {
        etch_render_loss(s->losses[i], loss, sizeof(loss));
        snprintf(text, sizeof(text), "LOST  %s", loss);
        etch_picture_write(p, LOOK_LOSS, 6, text);
    }
    if (s->n_losses > 8) {
        snprintf(text, sizeof(text), "LOST  %zu times more", s->n_losses - 8);
        etch_picture_write(p, LOOK_LOSS, 6, text);
    }
}

static void draw_conflicts(struct picture *p)
{
    for (size_t i = 0; i < p->sketch->n_conflicts; i++) {
        char text[700];

        snprintf(text, sizeof(text), "CONTRADICTION  %.600s", etch_render_string(p->sketch->conflicts[i]->text));
        etch_picture_write(p, LOOK_LOSS, 15, text);
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
        etch_picture_write(p, LOOK_DIM, 0, text);
    }
    for (size_t i = 0; i < s->n_steps; i++)
        if (s->steps[i]->thread >= s->n_threads) {
            etch_picture_write(p, LOOK_LOSS, 0, "Some steps belong to no known thread and are not drawn.");
            break;
        }
}

#define OTHERS_SHOWN 4u

static void draw_frame(struct picture *p, const Etch__SketchStack *stack, size_t number)
{
    const Etch__Place *place = etch_render_place(stack->frames[number]);
    char name[128], text[700];

    snprintf(text, sizeof(text), "%3zu  %s(%.200s)  %.300s:%u", number, etch_render_function(place, name, sizeof(name)),
             etch_render_arguments(stack, number), etch_render_basename(place->file), place->line);
    etch_picture_flow(p, 8, p->canvas.width - 9, 4, &(struct etch_text_run){text, LOOK_PLAIN, 0}, 1);
}

static void draw_stack(struct picture *p, const Etch__SketchStack *stack)
{
    struct etch_stack_view view;
    char text[600];

    etch_render_stack_view(stack, &view);
    etch_render_stack_title(p->sketch, stack, text, sizeof(text));
    etch_canvas_flow(&p->canvas, 1, p->y, 6, 0, &(struct etch_text_run){"STACK", LOOK_DIM, 0}, 1);
    etch_picture_flow(p, 8, p->canvas.width - 9, 2, &(struct etch_text_run){text, LOOK_BOLD, 0}, 1);
    for (size_t i = 0; i < view.n; i++) {
        if (i == view.gap) {
            snprintf(text, sizeof(text), "     %zu more", view.cut);
            etch_picture_flow(p, 8, p->canvas.width - 9, 0, &(struct etch_text_run){text, LOOK_DIM, 0}, 1);
        }
        draw_frame(p, stack, view.shown[i]);
    }
}

/* The stacks of other threads are drawn where there is nothing to compare with: little else is known then. */
void etch_picture_stacks(struct picture *p)
{
    size_t others = 0;
    char text[100];

    for (size_t i = 0; i < p->sketch->n_stacks; i++) {
        others += !p->sketch->stacks[i]->failing;
        if (!p->sketch->stacks[i]->failing && (p->sketch->compared || others > OTHERS_SHOWN))
            continue;
        p->y++;
        draw_stack(p, p->sketch->stacks[i]);
    }
    if (others && (p->sketch->compared || others > OTHERS_SHOWN)) {
        snprintf(text, sizeof(text), "stacks of %zu more threads: --html or --json",
                 others - (p->sketch->compared ? 0 : OTHERS_SHOWN));
        p->y++;
        etch_picture_flow(p, 8, p->canvas.width - 9, 0, &(struct etch_text_run){text, LOOK_DIM, 0}, 1);
    }
}

/* The other side of the deciding value, at the failing step. */
static void draw_passing(struct picture *p)
{
    const Etch__Sketch *s = p->sketch;
    char seen[96], text[512];

    for (size_t i = 0; i < s->n_steps; i++)
        for (size_t k = 0; s->steps[i]->failing && k < s->steps[i]->n_values; k++) {
            const Etch__SketchValue *v = s->steps[i]->values[k];
            const Etch__SketchPassingValue *of = etch_render_passing_of(s->steps[i], v);

            if (!of || !v->deciding || v->variable >= s->n_variables)
                continue;
            etch_render_passing_value(of, seen, sizeof(seen));
            snprintf(text, sizeof(text), "Passing runs at line %u: %.200s %s (%u runs).",
                     etch_render_place(s->steps[i]->place)->line, s->variables[v->variable]->name, seen, of->runs);
            etch_picture_write(p, LOOK_PLAIN, 2, text);
        }
}

void etch_picture_foot(struct picture *p)
{
    const Etch__Sketch *s = p->sketch;
    char text[256];

    p->y++;
    draw_passing(p);
    draw_unordered(p);
    if (has_unknown_value(s))
        etch_picture_write(p, LOOK_LOSS, 2, "? is a value that is not known.");
    if (has_recovered_value(s))
        etch_picture_write(p, LOOK_DIM, 2, "~ is a value that was recovered from the end, not observed.");
    if (has_tag_order(p))
        etch_picture_write(p, LOOK_DIM, 0,
                           p->canvas.unicode ? "─▶N: proven to be before step N." : "->N: proven to be before step N.");
    draw_losses(p);
    draw_conflicts(p);
    for (size_t i = 0; i < s->n_notes; i++)
        etch_picture_write(p, LOOK_LOSS, 2, etch_render_string(s->notes[i]));
    draw_idle(p);
    if (s->other_failures) {
        snprintf(text, sizeof(text), "%u failing run%s of other bugs %s left out.", s->other_failures,
                 s->other_failures == 1 ? "" : "s", s->other_failures == 1 ? "is" : "are");
        etch_picture_write(p, LOOK_DIM, 0, text);
    }
    if (s->slice_statements) {
        snprintf(text, sizeof(text), "slice %u statements, %u executed, %zu shown.", s->slice_statements,
                 s->executed_statements, s->n_steps);
        etch_picture_write(p, LOOK_DIM, 0, text);
    }
    if (p->model.n_columns)
        etch_picture_write(p, LOOK_DIM, 0, "--html FILE has the evidence of each line.");
}
