/* SPDX-License-Identifier: MIT */
/* See lanes.h. */
#include "sketch/render/lanes.h"

#include <stdlib.h>

#define LANES_FEW 4u /* so many threads always have lanes */

struct rated {
    size_t thread, place; /* place: among the model's columns */
    size_t rate;          /* 0: it failed; 1 + the best shown predictor that speaks of it; SIZE_MAX: a bystander */
};

static int by_rate(const void *x, const void *y)
{
    const struct rated *a = x, *b = y;

    if (a->rate != b->rate)
        return a->rate < b->rate ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static void rate(const struct etch_render_model *m, struct rated *list, size_t *place_of)
{
    for (size_t c = 0; c < m->n_columns; c++) {
        bool failing = m->sketch->threads[m->columns[c]]->failing;

        list[c] = (struct rated){m->columns[c], c, failing ? 0 : SIZE_MAX};
        place_of[m->columns[c]] = c;
    }
    for (size_t i = 0; i < m->n_steps; i++) {
        const Etch__SketchStep *step = m->sketch->steps[i];
        struct rated *r = step->thread < m->sketch->n_threads ? &list[place_of[step->thread]] : NULL;

        for (size_t k = 0; r && k < m->n_shown; k++)
            if (etch_render_step_has_predictor(step, m->shown[k]) && k + 1 < r->rate)
                r->rate = k + 1;
        if (r && step->failing)
            r->rate = 0;
    }
}

static size_t count_lanes(const struct etch_render_model *m, const struct rated *list)
{
    size_t n = 0;

    while (n < m->n_columns && n < ETCH_LANES_MAX && (list[n].rate != SIZE_MAX || m->n_columns <= LANES_FEW))
        n++;
    if (n < 2 && n < m->n_columns) /* nothing speaks of other threads */
        n = LANES_FEW;
    return n;
}

static void find_ends(struct etch_render_lanes *lanes, const struct etch_render_model *m)
{
    for (size_t i = 0; i < lanes->n; i++)
        lanes->first[i] = SIZE_MAX;
    for (size_t i = 0; i < m->n_steps; i++) {
        size_t lane = etch_render_lane(lanes, m, i), row = m->row_of[i];

        if (lane >= lanes->n)
            continue;
        lanes->first[lane] = row < lanes->first[lane] ? row : lanes->first[lane];
        lanes->last[lane] = row > lanes->last[lane] ? row : lanes->last[lane];
    }
}

int etch_render_lanes_make(struct etch_render_lanes *lanes, const struct etch_render_model *m)
{
    size_t n_threads = m->sketch->n_threads;
    struct rated *list = calloc(m->n_columns + 1, sizeof(*list));
    size_t *place_of = calloc(n_threads + 1, sizeof(*place_of));

    *lanes = (struct etch_render_lanes){.threads = calloc(m->n_columns + 1, sizeof(size_t)),
                                        .of = calloc(n_threads + 1, sizeof(size_t)),
                                        .first = calloc(ETCH_LANES_MAX + 1, sizeof(size_t)),
                                        .last = calloc(ETCH_LANES_MAX + 1, sizeof(size_t))};
    if (list && place_of && lanes->threads && lanes->of && lanes->first && lanes->last) {
        rate(m, list, place_of);
        qsort(list, m->n_columns, sizeof(*list), by_rate);
        lanes->n = count_lanes(m, list);
        lanes->n_strip = m->n_columns - lanes->n;
        for (size_t i = 0; i < n_threads; i++)
            lanes->of[i] = ETCH_LANE_NONE;
        for (size_t i = 0; i < m->n_columns; i++) {
            lanes->threads[i] = list[i].thread;
            lanes->of[list[i].thread] = i < lanes->n ? i : ETCH_LANE_STRIP;
        }
        find_ends(lanes, m);
        free(list);
        free(place_of);
        return 0;
    }
    free(list);
    free(place_of);
    return -1;
}

void etch_render_lanes_release(struct etch_render_lanes *lanes)
{
    free(lanes->threads);
    free(lanes->of);
    free(lanes->first);
    free(lanes->last);
    *lanes = (struct etch_render_lanes){0};
}

size_t etch_render_lane(const struct etch_render_lanes *lanes, const struct etch_render_model *m, size_t step)
{
    uint32_t thread = m->sketch->steps[step]->thread;

    return thread < m->sketch->n_threads ? lanes->of[thread] : ETCH_LANE_NONE;
}
