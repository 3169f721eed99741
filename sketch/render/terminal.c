/* SPDX-License-Identifier: MIT */
/* The sketch in a terminal: a column for each thread, time down, values in columns at the right. Threads that do not
 * fit side by side share one column, with the thread's number before each step. No step is left out for lack of width.
 */
#include "sketch/render.h"
#include "sketch/render/picture.h"

#include <stdlib.h>

enum { MIN_WIDTH = 40, MAX_WIDTH = 400 };

unsigned etch_picture_flow(struct picture *p, unsigned x, unsigned width, unsigned hang,
                           const struct etch_text_run *runs, size_t n)
{
    unsigned lines = etch_canvas_flow(&p->canvas, x, p->y, width, hang, runs, n);

    p->y += lines;
    return lines;
}

void etch_picture_write(struct picture *p, enum etch_look look, unsigned hang, const char *text)
{
    struct etch_text_run run = {text, look, PICTURE_NOTE};

    etch_picture_flow(p, 1, p->canvas.width - 1, hang, &run, 1);
}

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

    if (!used || !etch_picture_place(p)) {
        free(used);
        return false;
    }
    etch_picture_threads(p);
    for (size_t row = 0; row < p->model.n_rows; row++)
        etch_picture_row(p, row, used);
    for (size_t k = 0; k < p->sketch->n_orders; k++)
        if (etch_picture_has_arrow(p, p->sketch->orders[k]) &&
            etch_render_order_is_sound(p->sketch, p->sketch->orders[k]))
            etch_picture_arrow(p, p->sketch->orders[k]);
    free(used);
    return true;
}

char *etch_render_terminal(const Etch__Sketch *sketch, const struct etch_render_terminal *options, size_t *size)
{
    struct picture p;
    char *text = NULL;

    if (begin(&p, sketch, options)) {
        etch_picture_head(&p);
        etch_picture_causes(&p);
        if (p.model.n_columns == 0 || draw_steps(&p)) {
            etch_picture_stacks(&p);
            etch_picture_foot(&p);
            text = etch_canvas_write(&p.canvas, size);
        }
    }
    release(&p);
    return text;
}
