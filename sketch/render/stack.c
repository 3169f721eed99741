/* SPDX-License-Identifier: MIT */
/* See stack.h. */
#include "sketch/render/stack.h"

#include "sketch/render/model.h"

#include <stdio.h>

#define INNER (ETCH_STACK_SHOWN * 3 / 4) /* frames before a gap */

void etch_render_stack_view(const Etch__SketchStack *stack, struct etch_stack_view *view)
{
    size_t n = stack->n_frames;

    view->n = n < ETCH_STACK_SHOWN ? n : ETCH_STACK_SHOWN;
    view->cut = n - view->n;
    view->gap = view->cut ? INNER : view->n;
    for (size_t i = 0; i < view->n; i++)
        view->shown[i] = i < view->gap ? i : i + view->cut;
}

void etch_render_stack_title(const Etch__Sketch *sketch, const Etch__SketchStack *stack, char *text, size_t size)
{
    const char *inside = etch_render_string(stack->inside);
    char number[32] = "";

    if (stack->drawn_case == ETCH__SKETCH_STACK__DRAWN_COLUMN && stack->column < sketch->n_threads)
        snprintf(number, sizeof(number), "T%u ", stack->column + 1);
    snprintf(text, size, "%s%.200s%s%.200s%s", number, etch_render_string(stack->thread), inside[0] ? ", in " : "",
             inside, inside[0] ? "()" : "");
}

const char *etch_render_arguments(const Etch__SketchStack *stack, size_t frame)
{
    return frame < stack->n_arguments ? etch_render_string(stack->arguments[frame]) : "";
}
