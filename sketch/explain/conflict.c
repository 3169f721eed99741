/* SPDX-License-Identifier: MIT */
/* Contradictory evidence in a sketch; see conflict.h. */
#include "sketch/explain/conflict.h"

#include "decoder/order.h"
#include "sketch/runs/order.h"

static const struct etch_conflict *conflicts_of(const struct etch_run *run, size_t *n)
{
    *n = 0;
    return run->order ? etch_run_order_conflicts(run->order, n) : NULL;
}

static void add(struct composition *c, const struct etch_conflict *from)
{
    Etch__SketchConflict *to = etch_compose_new(c, sizeof(*to));
    char text[512];

    if (!to)
        return;
    etch__sketch_conflict__init(to);
    etch_run_order_conflict_text(from, text, sizeof(text));
    to->text = etch_compose_text(c, text);
    if (from->cpu != ETCH_CPU_NONE) {
        to->blamed_case = ETCH__SKETCH_CONFLICT__BLAMED_CPU;
        to->cpu = from->cpu;
        to->excess = from->excess > 0 ? (uint64_t)from->excess : 0;
    } else if (from->object) {
        to->blamed_case = ETCH__SKETCH_CONFLICT__BLAMED_OBJECT;
        to->object = from->object;
    }
    if (from->cpu != ETCH_CPU_NONE && from->cpu_with < ETCH_CPU_ANY) {
        to->against_case = ETCH__SKETCH_CONFLICT__AGAINST_CPU_WITH;
        to->cpu_with = from->cpu_with;
    }
    to->events = from->events;
    etch_compose_push(c, &c->sketch->conflicts, &c->sketch->n_conflicts, to);
}

void etch_conflict_fill(struct composition *c)
{
    size_t n;
    const struct etch_conflict *conflicts = conflicts_of(c->run, &n);

    for (size_t i = 0; i < n; i++)
        add(c, &conflicts[i]);
}

size_t etch_conflict_count_others(const struct composition *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->n_runs; i++) {
        size_t n;

        conflicts_of(c->runs[i], &n);
        count += c->runs[i] != c->run && n > 0;
    }
    return count;
}
