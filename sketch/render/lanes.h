/* SPDX-License-Identifier: MIT */
/* Which threads of a picture have a lane of their own: the thread that failed, then those of the cause. Bystanders
 * share a strip if there are many threads. */
#ifndef ETCH_SKETCH_RENDER_LANES_H
#define ETCH_SKETCH_RENDER_LANES_H

#include "sketch/render/model.h"

#define ETCH_LANES_MAX 6u
#define ETCH_LANE_STRIP (SIZE_MAX - 1)
#define ETCH_LANE_NONE SIZE_MAX

struct etch_render_lanes {
    size_t *threads; /* by lane, then those of the strip */
    size_t n;        /* lanes */
    size_t n_strip;
    size_t *of;           /* by thread: its lane, ETCH_LANE_STRIP, or ETCH_LANE_NONE: it has no step */
    size_t *first, *last; /* by lane: its first and last row with a step */
};

/* Returns 0, or -1 where memory is short. To be released in either case. */
int etch_render_lanes_make(struct etch_render_lanes *lanes, const struct etch_render_model *model);
void etch_render_lanes_release(struct etch_render_lanes *lanes);

/* The lane of a step. */
size_t etch_render_lane(const struct etch_render_lanes *lanes, const struct etch_render_model *model, size_t step);

#endif
