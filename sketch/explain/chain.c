/* SPDX-License-Identifier: MIT */
/* The value chain; see layout.h. */
#include "sketch/explain/dependence_walk.h"
#include "sketch/explain/layout.h"

#define CHAIN_MAX 8u /* steps that a chain adds: a longer chain goes on in the slice */

/* The write that a read got its value from. ETCH_NOWHERE where the newest recorded write left another value: then a
 * write between the two was not recorded. */
static uint32_t writer_of(const struct etch_run *run, uint32_t read)
{
    const struct etch_run_access *a = &run->accesses.v[read];
    uint32_t write = a->read ? etch_dependence_definition(run, read) : ETCH_NOWHERE;
    const struct etch_run_access *w = write == ETCH_NOWHERE ? NULL : &run->accesses.v[write];

    if (!w || (w->known && a->known && w->address == a->address && w->size == a->size && w->value != a->value))
        return ETCH_NOWHERE;
    return write;
}

static bool share_visit(const struct etch_run_access *a, const struct etch_run_access *b)
{
    return a->thread == b->thread && a->place == b->place && a->nth == b->nth && a->nth;
}

/* True if a value may be an address: it leads to the memory, and is not what was stored. */
static bool may_be_address(const struct etch_run_access *a)
{
    return a->size == 8 && (!a->known || a->value >= 65536);
}

/* True if the write may have taken its value from this read of the same visit. An equal value is the value itself. If
 * no read has an equal value, the write computed its value from numbers, and not from the addresses that it used. */
static bool took(const struct etch_run *run, uint32_t write, uint32_t read)
{
    const struct etch_run_access *w = &run->accesses.v[write], *a = &run->accesses.v[read];
    bool equal = false;

    if (!a->read || a->address == w->address || !share_visit(a, w))
        return false;
    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *b = &run->accesses.v[i];

        equal |=
            b->read && b->known && w->known && b->value == w->value && b->address != w->address && share_visit(b, w);
    }
    return equal ? a->known && a->value == w->value : !may_be_address(a);
}

/* A step for the writer of a value, and for the writers of the values that the writer took. */
static void follow(struct composition *c, uint32_t read, unsigned *left)
{
    const struct etch_run *run = c->run;
    uint32_t write = writer_of(run, read);

    if (write == ETCH_NOWHERE || !*left || !etch_dependence_statement(c, run->accesses.v[write].place))
        return;
    if (!etch_layout_item_of(c, &run->accesses.v[write])) {
        etch_layout_add_access(c, write);
        --*left;
    }
    for (uint32_t i = 0; i < write; i++)
        if (took(run, write, i))
            follow(c, i, left);
}

/* The chain begins at the value that the best predictor is about, or else at the null pointer that the failing
 * instruction followed. */
void etch_chain_extend(struct composition *c)
{
    const struct etch_run *run = c->run;
    unsigned left = CHAIN_MAX;

    for (uint32_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];
        bool wanted = c->top ? a->variable == c->top->variable : a->crash;

        if (wanted && a->read && a->place == run->failing_place && a->thread == run->failing_thread &&
            (a->crash || etch_layout_item_of(c, a)))
            follow(c, i, &left);
    }
}

static uint32_t read_of_step(const struct composition *c, const struct layout_item *item, uint32_t variable)
{
    uint32_t found = ETCH_NOWHERE;

    for (uint32_t i = 0; i < c->run->accesses.n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[i];

        if (a->read && a->variable == variable && a->thread == item->thread && a->place == item->place &&
            (item->nth ? a->nth == item->nth : i == item->access))
            found = i;
    }
    return found;
}

/* The step that wrote a value, where the write is recovered: the newest before in the only thread that there is. Its
 * value must be the one that was read. */
static uint32_t recovered_writer(const struct composition *c, uint32_t step, const Etch__SketchValue *read)
{
    const Etch__Sketch *s = c->sketch;

    if (c->run->threads.n != 1 || read->known_case != ETCH__SKETCH_VALUE__KNOWN_VALUE)
        return ETCH_NOWHERE;
    for (uint32_t i = step; i-- > 0;)
        for (size_t k = 0; k < s->steps[i]->n_values; k++) {
            const Etch__SketchValue *w = s->steps[i]->values[k];

            if (w->write && w->variable == read->variable)
                return w->known_case == ETCH__SKETCH_VALUE__KNOWN_VALUE && w->value == read->value ? i : ETCH_NOWHERE;
        }
    return ETCH_NOWHERE;
}

static void link_to(Etch__SketchValue *v, uint32_t step)
{
    v->origin_case = ETCH__SKETCH_VALUE__ORIGIN_FROM;
    v->from = step;
}

void etch_chain_link(struct composition *c)
{
    for (size_t i = 0; i < c->items.n; i++) {
        Etch__SketchStep *step = c->sketch->steps[c->items.v[i].step];

        for (size_t k = 0; k < step->n_values; k++) {
            Etch__SketchValue *v = step->values[k];
            uint32_t read = v->write || v->recovered || v->variable >= c->variables.n
                                ? ETCH_NOWHERE
                                : read_of_step(c, &c->items.v[i], c->variables.v[v->variable]);
            uint32_t write = read == ETCH_NOWHERE ? ETCH_NOWHERE : writer_of(c->run, read);
            const struct layout_item *by =
                write == ETCH_NOWHERE ? NULL : etch_layout_item_of(c, &c->run->accesses.v[write]);

            if (by && by != &c->items.v[i])
                link_to(v, by->step);
            else if (!v->write && !by && (write = recovered_writer(c, c->items.v[i].step, v)) != ETCH_NOWHERE)
                link_to(v, write);
        }
    }
}
