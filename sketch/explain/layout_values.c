/* SPDX-License-Identifier: MIT */
/* The columns of values, and the values of each step; see layout.h. */
#include "sketch/explain/layout.h"

#include "decoder/backward.h"

#include <stdio.h>
#include <string.h>

#define VALUES_MAX 4u     /* columns */
#define RECOVERED_MAX 12u /* variables with values, if some are recovered and no cause is known */

/* ---- Variables and values ---- */

static void want_variable(struct composition *c, uint32_t variable)
{
    for (size_t i = 0; i < c->variables.n; i++)
        if (c->variables.v[i] == variable)
            return;
    if (variable < c->names->variables.n)
        c->failed |= !etch_array_push(&c->variables, variable);
}

/* The newest recovered value of a variable, of one item; NULL: none. */
static const struct etch_run_access *recovered_of(const struct composition *c, const struct layout_item *item,
                                                  uint32_t variable)
{
    for (size_t i = c->run->recovered.n; item->nth && i-- > 0;) {
        const struct etch_run_access *a = &c->run->recovered.v[i];

        if (a->thread == item->thread && a->place == item->place && a->nth == item->nth && a->variable == variable)
            return a;
    }
    return NULL;
}

/* The values next to the failure matter most. */
static void choose_recovered(struct composition *c)
{
    for (size_t i = c->items.n; i-- > 0;)
        for (size_t k = c->run->recovered.n; k-- > 0;)
            if (recovered_of(c, &c->items.v[i], c->run->recovered.v[k].variable))
                want_variable(c, c->run->recovered.v[k].variable);
}

void etch_layout_choose_variables(struct composition *c)
{
    size_t most = c->run->recovered.n && !c->top ? RECOVERED_MAX : VALUES_MAX;

    if (c->top)
        want_variable(c, c->top->variable);
    for (unsigned kind = 0; kind < ETCH_PREDICTOR_KINDS; kind++)
        if (c->best[kind] && c->top && c->best[kind]->f >= c->top->f - 1e-9)
            want_variable(c, c->best[kind]->variable);
    for (size_t i = 0; i < c->items.n; i++)
        if (c->items.v[i].access != ETCH_NOWHERE && c->run->accesses.v[c->items.v[i].access].object != ETCH_NOWHERE)
            want_variable(c, c->run->accesses.v[c->items.v[i].access].variable);
    choose_recovered(c);
    if (c->variables.n > most) {
        c->unshown_variables = c->variables.n - most;
        c->variables.n = most;
    }
    for (size_t i = 0; i < c->variables.n; i++) {
        Etch__SketchVariable *v = etch_compose_new(c, sizeof(*v));

        if (!v)
            return;
        etch__sketch_variable__init(v);
        v->name = etch_compose_text(c, c->names->variables.v[c->variables.v[i]]);
        for (size_t k = 0; k < c->run->accesses.n; k++)
            if (c->run->accesses.v[k].variable == c->variables.v[i])
                v->address = c->run->accesses.v[k].address;
        etch_compose_push(c, &c->sketch->variables, &c->sketch->n_variables, v);
    }
}

static bool is_deciding(const struct composition *c, uint32_t index)
{
    uint32_t at[ETCH_PREDICTOR_ACCESSES];
    size_t n = c->best[ETCH_PREDICTOR_VALUE] ? etch_predictor_instance(c->best[ETCH_PREDICTOR_VALUE], c->run, at) : 0;

    return n && at[0] == index;
}

/* How a recovered value is known. */
static void say_how(const struct composition *c, const struct etch_run_access *a, char *text, size_t size)
{
    static const char *const how[] = {[ETCH_HOW_UNKNOWN] = "",
                                      [ETCH_HOW_CORE] = "nothing has changed it since",
                                      [ETCH_HOW_CONSTANT] = "it is a constant",
                                      [ETCH_HOW_FLOW] = "the way that the thread took shows it",
                                      [ETCH_HOW_UNDONE] = "from a later value, by undoing instructions",
                                      [ETCH_HOW_EXECUTED] = "from earlier values, by executing instructions again"};

    snprintf(text, size, "recovered from the %s: %s", c->run->recovered_from_core ? "core" : "registers at the failure",
             how[a->how]);
}

static void add_recovered(struct composition *c, Etch__SketchStep *step, const struct etch_run_access *a,
                          uint32_t column)
{
    Etch__SketchValue *v = etch_compose_new(c, sizeof(*v));
    char text[160];

    if (!v)
        return;
    etch__sketch_value__init(v);
    v->variable = column;
    v->write = a->write;
    v->known_case = ETCH__SKETCH_VALUE__KNOWN_VALUE;
    v->value = a->value;
    v->recovered = true;
    say_how(c, a, text, sizeof(text));
    v->evidence = etch_compose_text(c, text);
    etch_compose_push(c, &step->values, &step->n_values, v);
}

static void add_value(struct composition *c, Etch__SketchStep *step, uint32_t index, uint32_t column)
{
    const struct etch_run_access *a = &c->run->accesses.v[index];
    Etch__SketchValue *v = etch_compose_new(c, sizeof(*v));

    if (!v)
        return;
    etch__sketch_value__init(v);
    v->variable = column;
    v->write = a->write;
    if (a->known) {
        v->known_case = ETCH__SKETCH_VALUE__KNOWN_VALUE;
        v->value = a->value;
    }
    v->deciding = is_deciding(c, index);
    v->evidence = etch_compose_text(
        c, a->crash                                     ? "the failing instruction followed it"
           : c->run->source == ETCH__SOURCE__SOURCE_VPT ? "seen by the emulated watch, read back right after the access"
           : c->run->source == ETCH__SOURCE__SOURCE_LAB ? "seen in the lab, in which one thread runs at a time"
                                                        : "watchpoint");
    etch_compose_push(c, &step->values, &step->n_values, v);
}

/* The last value of each variable with a column, as this step had it. */
void etch_layout_add_values(struct composition *c, Etch__SketchStep *step, const struct layout_item *item)
{
    for (uint32_t column = 0; column < c->variables.n; column++) {
        const struct etch_run_access *recovered = recovered_of(c, item, c->variables.v[column]);
        uint32_t found = ETCH_NOWHERE;

        for (size_t i = 0; i < c->run->accesses.n; i++) {
            const struct etch_run_access *a = &c->run->accesses.v[i];

            if (a->variable == c->variables.v[column] && a->thread == item->thread && a->place == item->place &&
                (item->nth ? a->nth == item->nth : i == item->access))
                found = (uint32_t)i;
        }
        if (found != ETCH_NOWHERE && (c->run->accesses.v[found].known || !recovered))
            add_value(c, step, found, column);
        else if (recovered)
            add_recovered(c, step, recovered, column);
    }
}
