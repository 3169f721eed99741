/* SPDX-License-Identifier: MIT */
/* See trail.h. */
#include "sketch/runs/trail.h"

#include <stdlib.h>
#include <string.h>

void etch_trail_release(struct trail *trail)
{
    free(trail->v);
    memset(trail, 0, sizeof(*trail));
}

bool etch_trail_push(struct trail *trail, const struct trail_entry *entry)
{
    struct trail_entry *to;

    if (!trail->v && !(trail->v = malloc(TRAIL_MAX * sizeof(*trail->v))))
        return false;
    to = &trail->v[trail->next];
    *to = *entry;
    to->run.gap = trail->gap;
    to->run.called = trail->called;
    trail->gap = ETCH_LAST_GAP_NONE;
    trail->called = 0;
    trail->next = (trail->next + 1) % TRAIL_MAX;
    trail->n += trail->n < TRAIL_MAX;
    return true;
}

void etch_trail_gap(struct trail *trail, enum etch_last_gap gap, uint64_t called)
{
    if (trail->gap == ETCH_LAST_GAP_CALL && gap == ETCH_LAST_GAP_CALL && !called)
        return; /* unseen code ends: what it was is known from its beginning */
    if (trail->gap == ETCH_LAST_GAP_LOSS)
        return;
    trail->called = trail->gap == ETCH_LAST_GAP_NONE ? called : 0;
    trail->gap = gap;
}

void etch_trail_clear(struct trail *trail)
{
    trail->n = trail->next = 0;
    trail->gap = ETCH_LAST_GAP_LOSS;
    trail->called = 0;
    trail->doubtful = false;
}

const struct trail_entry *etch_trail_at(const struct trail *trail, size_t i)
{
    return &trail->v[(trail->next + TRAIL_MAX - trail->n + i) % TRAIL_MAX];
}
