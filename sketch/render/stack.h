/* SPDX-License-Identifier: MIT */
/* Call stacks as renderers show them: a long stack is cut in its middle. */
#ifndef ETCH_SKETCH_RENDER_STACK_H
#define ETCH_SKETCH_RENDER_STACK_H

#include "proto/etch.pb-c.h"

#include <stddef.h>

/* The frames to show: numbers of frames, innermost first. A stack of more than ETCH_STACK_SHOWN frames has a gap: `cut`
 * frames are left out before the frame at place `gap` of `shown`. */
#define ETCH_STACK_SHOWN 16u

struct etch_stack_view {
    size_t shown[ETCH_STACK_SHOWN];
    size_t n, gap, cut;
};

void etch_render_stack_view(const Etch__SketchStack *stack, struct etch_stack_view *view);

/* "T2 consumer", "main, in pthread_join()". */
void etch_render_stack_title(const Etch__Sketch *sketch, const Etch__SketchStack *stack, char *text, size_t size);

/* The known arguments of a frame, "n = 3"; empty: none. */
const char *etch_render_arguments(const Etch__SketchStack *stack, size_t frame);

#endif
