/* SPDX-License-Identifier: MIT */
/* The arrows of a picture: from a step to a later step that a cause orders after it. */
#include "sketch/render/picture.h"

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

void etch_picture_arrow(struct picture *p, const Etch__SketchOrder *order)
{
    size_t a = order->before, b = order->after;
    size_t ca = etch_render_column(&p->model, a), cb = etch_render_column(&p->model, b);
    const struct etch_render_row *row = &p->model.rows[p->model.row_of[b]];
    unsigned ya = p->step_y[a], yb = p->step_y[b], bend = yb;

    if (ca == SIZE_MAX || cb == SIZE_MAX || ya >= yb)
        return;
    if (row->unordered && !p->stacked && ca != cb) {
        for (size_t k = 0; k < row->n; k++) {
            unsigned y = p->step_y[p->model.order[row->first + k]];

            bend = y < bend ? y : bend;
        }
        bend = bend > ya + 1 ? bend - 1 : bend;
    }
    draw_vertical(p, p->x[ca], ya, bend);
    if (p->x[cb] >= p->x[ca])
        draw_rightwards(p, p->x[ca], p->x[cb], bend, yb);
    else
        draw_leftwards(p, p->x[ca], p->x[cb], bend, yb);
}
