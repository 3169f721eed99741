/* SPDX-License-Identifier: MIT */
/* What the passing runs did at the statement of a step; see layout.h. */
#include "sketch/explain/layout.h"

static void take(Etch__SketchPassingValue *to, uint64_t value)
{
    to->least = to->runs && to->least < value ? to->least : value;
    to->most = to->runs && to->most > value ? to->most : value;
    to->runs++;
}

/* True if an earlier passing run had the same value here. */
static bool is_repeated(const struct composition *c, size_t run, uint32_t place, uint32_t variable, bool write,
                        uint64_t value)
{
    for (size_t i = 0; i < run; i++) {
        const struct etch_run_access *a =
            c->runs[i]->failing ? NULL : etch_run_last_value(c->runs[i], place, variable, write);

        if (a && a->value == value)
            return true;
    }
    return false;
}

static void add_values(struct composition *c, Etch__SketchPassing *to, uint32_t place, uint32_t column, bool write)
{
    Etch__SketchPassingValue *v = etch_compose_new(c, sizeof(*v));
    uint32_t variable = c->variables.v[column];

    if (!v)
        return;
    etch__sketch_passing_value__init(v);
    v->variable = column;
    v->write = write;
    for (size_t i = 0; i < c->n_runs; i++) {
        const struct etch_run_access *a =
            c->runs[i]->failing ? NULL : etch_run_last_value(c->runs[i], place, variable, write);

        if (!a)
            continue;
        v->distinct += !is_repeated(c, i, place, variable, write, a->value);
        take(v, a->value);
    }
    if (v->runs)
        etch_compose_push(c, &to->values, &to->n_values, v);
    else
        etch__sketch_passing_value__free_unpacked(v, NULL);
}

void etch_passing_fill(struct composition *c, Etch__SketchStep *step, const struct layout_item *item)
{
    Etch__SketchPassing *to = c->passing ? etch_compose_new(c, sizeof(*to)) : NULL;

    if (!to)
        return;
    etch__sketch_passing__init(to);
    step->passing = to;
    for (size_t i = 0; i < c->n_runs; i++) {
        const struct etch_run *run = c->runs[i];

        if (run->failing)
            continue;
        if (etch_run_visited(run, item->place))
            to->ran++;
        else if (run->flow && !run->lost && !etch_run_may_have(run, item->place))
            to->not_run++;
        else
            to->unknown++;
    }
    for (uint32_t column = 0; column < c->variables.n; column++)
        for (int write = 0; write < 2; write++)
            add_values(c, to, item->place, column, write != 0);
}
