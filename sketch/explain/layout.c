/* SPDX-License-Identifier: MIT */
/* Steps in columns and in order; see layout.h. */
#include "sketch/explain/layout.h"

#include "base/path.h"
#include "sketch/explain/cause.h"
#include "sketch/explain/dependence_walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Items ---- */

static struct layout_item *find_item(struct composition *c, uint32_t thread, uint32_t place, uint64_t nth)
{
    for (size_t i = 0; i < c->items.n; i++)
        if (c->items.v[i].thread == thread && c->items.v[i].place == place && c->items.v[i].nth == nth)
            return &c->items.v[i];
    return NULL;
}

struct layout_item *etch_layout_item_of(struct composition *c, const struct etch_run_access *access)
{
    return find_item(c, access->thread, access->place, access->nth);
}

/* The last time that the thread did what this branch lets happen, where that was before the branch's own last time,
 * which let nothing happen: a loop went round once more. NULL: it was not so. */
static const struct etch_run_visit *let_happen(const struct composition *c, const struct etch_run_visit *v)
{
    const Etch__Statement *s = etch_dependence_statement(c, v->place);
    const struct etch_run_visit *last = NULL;

    for (size_t i = 0; s && s->branch && v->place != c->run->failing_place && i < c->run->visits.n; i++) {
        const struct etch_run_visit *w = &c->run->visits.v[i];

        if (w->thread != v->thread || w->place == v->place || !etch_dependence_brought_in(c, s, w->place))
            continue;
        if (w->seq > v->seq && w->place != c->run->failing_place)
            return NULL;
        if (w->seq < v->seq && (!last || w->seq > last->seq))
            last = w;
    }
    return last;
}

/* The visit to show: the one that had a part, where that is known, or the last. */
static const struct etch_run_visit *visit_shown(const struct composition *c, const struct etch_run_visit *last)
{
    for (size_t i = 0; i < c->chosen.n; i++)
        if (c->chosen.v[i].thread == last->thread && c->chosen.v[i].place == last->place)
            return &c->chosen.v[i];
    return last;
}

static void add_visits(struct composition *c, const bool *shown)
{
    for (size_t i = 0; i < c->run->visits.n; i++) {
        const struct etch_run_visit *last = &c->run->visits.v[i], *v = visit_shown(c, last);
        struct layout_item item = {.thread = v->thread,
                                   .place = v->place,
                                   .nth = v->count,
                                   .seq = v->seq,
                                   .lo = v->lo,
                                   .hi = v->hi,
                                   .depth = v->depth,
                                   .count = last->count,
                                   .access = ETCH_NOWHERE};

        /* The head of a loop stands before the last round that it let in, not where it ended the loop. */
        const struct etch_run_visit *round = v == last && v->count > 1 ? let_happen(c, v) : NULL;

        if (round) {
            item.nth = v->count - 1;
            item.seq = round->seq - 1;
            item.lo = round->lo;
            item.hi = round->hi;
        }
        if (v->thread == c->run->failing_thread && v->place == c->run->failing_place)
            item.seq = UINT64_MAX - 1; /* the end of the thread, after all calls that the statement made before */
        if (shown[v->place])
            c->failed |= !etch_array_push(&c->items, item);
    }
}

/* A step that is known only by an access: in runs without control flow, and earlier visits that belong to a
 * predictor. */
void etch_layout_add_access(struct composition *c, uint32_t index)
{
    const struct etch_run_access *a = &c->run->accesses.v[index];
    struct layout_item item = {.thread = a->thread,
                               .place = a->place,
                               .nth = a->nth,
                               .seq = a->seq,
                               .lo = a->lo,
                               .hi = a->hi,
                               .depth = a->depth,
                               .count = 1,
                               .access = index};
    struct layout_item *same = find_item(c, a->thread, a->place, a->nth);

    if (same)
        same->access = index;
    else
        c->failed |= !etch_array_push(&c->items, item);
}

#define REPEATS_MAX 3u /* rows of one statement in one thread, where every access is a step */

/* The row that stands for all visits of a statement by a thread. NULL: there is none. */
static struct layout_item *item_of_all(struct composition *c, const struct etch_run_access *a)
{
    for (size_t i = 0; i < c->items.n; i++)
        if (c->items.v[i].thread == a->thread && c->items.v[i].place == a->place && c->items.v[i].count > 1)
            return &c->items.v[i];
    return NULL;
}

/* The newest visits have rows of their own. The row of all visits counts the others. */
static void add_repeat(struct composition *c, uint32_t index)
{
    const struct etch_run_access *a = &c->run->accesses.v[index];
    struct layout_item *all = item_of_all(c, a);
    unsigned later = 0;

    for (size_t i = index + 1; i < c->run->accesses.n && later < REPEATS_MAX; i++) {
        const struct etch_run_access *b = &c->run->accesses.v[i];

        later += b->thread == a->thread && b->place == a->place && b->nth != a->nth;
    }
    if (later >= REPEATS_MAX)
        return;
    if (all)
        all->count--;
    etch_layout_add_access(c, index);
}

/* The last access of each item, which is what its time is known by. */
static void add_accesses(struct composition *c, const bool *shown)
{
    for (size_t i = 0; i < c->run->accesses.n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[i];
        struct layout_item *item;

        if (a->place == ETCH_NOWHERE || !shown[a->place])
            continue;
        item = find_item(c, a->thread, a->place, a->nth);
        if (item)
            item->access = (uint32_t)i;
        else if (!c->run->flow)
            add_repeat(c, (uint32_t)i);
    }
}

static void add_instances(struct composition *c)
{
    for (unsigned kind = 0; kind < ETCH_PREDICTOR_KINDS; kind++) {
        uint32_t at[ETCH_PREDICTOR_ACCESSES];
        size_t n;

        if (!c->best[kind] || (c->best[kind] != c->top && kind == ETCH_PREDICTOR_ATOMICITY))
            continue;
        n = etch_predictor_instance(c->best[kind], c->run, at);
        for (size_t i = 0; i < n; i++)
            if (c->best[kind] == c->top || find_item(c, c->run->accesses.v[at[i]].thread,
                                                     c->run->accesses.v[at[i]].place, c->run->accesses.v[at[i]].nth))
                etch_layout_add_access(c, at[i]);
    }
}

/* The thread with a name; another one than the failing one, where there are more. */
static uint32_t thread_named(const struct etch_run *run, const char *name, uint32_t failing)
{
    uint32_t found = ETCH_NOWHERE;

    for (uint32_t i = 0; name && i < run->threads.n; i++)
        if (run->threads.v[i].name && strcmp(run->threads.v[i].name, name) == 0 &&
            (found == ETCH_NOWHERE || found == failing))
            found = i;
    return found;
}

bool etch_layout_not_yet(const struct composition *c, uint32_t *place)
{
    const char *pattern = c->top ? c->top->pattern : "";
    uint32_t at[ETCH_PREDICTOR_ACCESSES];

    if (strcmp(pattern, "RW") != 0 && strcmp(pattern, "WRW") != 0 && strcmp(pattern, "WRRW") != 0)
        return false;
    *place = c->top->places[c->top->n_places - 1];
    return !etch_run_visited(c->run, *place) || etch_predictor_instance(c->top, c->run, at) + 1 == c->top->n_places;
}

/* A read came before a write that had not run when it failed. The write is shown in the thread that does it elsewhere.
 */
static void add_not_yet(struct composition *c)
{
    struct layout_item item = {
        .seq = UINT64_MAX, .lo = UINT64_MAX, .hi = UINT64_MAX, .access = ETCH_NOWHERE, .not_yet = true};

    if (!etch_layout_not_yet(c, &item.place))
        return;
    item.thread = ETCH_NOWHERE;
    for (size_t i = 0; i < c->n_runs && item.thread == ETCH_NOWHERE; i++) {
        const struct etch_run_visit *v = etch_run_visited(c->runs[i], item.place);

        if (v)
            item.thread = thread_named(c->run, c->runs[i]->threads.v[v->thread].name, c->run->failing_thread);
    }
    if (item.thread != ETCH_NOWHERE)
        c->failed |= !etch_array_push(&c->items, item);
}

/* ---- Steps ---- */

/* The last visit failed. Earlier visits of the failing statement have rows of their own. */
static bool is_failing(const struct composition *c, const struct layout_item *item)
{
    const struct etch_run *run = c->run;

    for (const struct layout_item *i = item + 1; i < c->items.v + c->items.n; i++)
        if (i->thread == item->thread && i->place == item->place && !i->not_yet)
            return false;
    if (run->failure->kind == ETCH__FAILURE_KIND__FAILURE_HANG)
        return run->threads.v[item->thread].part && run->threads.v[item->thread].wait_place == item->place;
    return item->thread == run->failing_thread && item->place == run->failing_place;
}

static void note_of(const struct composition *c, const struct layout_item *item, bool failing, char *text, size_t size)
{
    const struct etch_run_thread *t = &c->run->threads.v[item->thread];
    const Etch__Failure *f = c->run->failure;

    text[0] = '\0';
    if (item->not_yet)
        snprintf(text, size, "had not run when it failed");
    else if (failing && f->kind == ETCH__FAILURE_KIND__FAILURE_HANG)
        snprintf(text, size, t->wait_in ? "waits for ever in %s" : "stands here", t->wait_in ? t->wait_in : "");
    else if (failing && etch_cause_step(f, text, size))
        return;
    else if (failing && f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL) {
        const char *name = sigabbrev_np((int)f->signal);
        size_t n = (size_t)snprintf(text, size, "SIG%s", name ? name : "?");

        if (n < size && (f->signal == 11 || f->signal == 7))
            snprintf(text + n, size - n, ", address 0x%" PRIx64, f->fault_address);
    }
}

static void link_predictors(struct composition *c, Etch__SketchStep *step, const struct layout_item *item)
{
    uint32_t *list = etch_compose_new(c, (c->sketch->n_predictors + 1) * sizeof(*list));

    if (!list)
        return;
    for (uint32_t i = 0; i < c->sketch->n_predictors; i++) {
        const struct etch_predictor *p = &c->predictors.all.v[i];

        for (uint32_t k = 0; k < p->n_places; k++)
            if (p->places[k] == item->place) {
                list[step->n_predictors++] = i;
                break;
            }
    }
    step->predictors = list;
}

static void add_step(struct composition *c, struct layout_item *item, uint32_t rank, const uint32_t *column,
                     uint32_t base_depth)
{
    Etch__SketchStep *step = etch_compose_new(c, sizeof(*step));
    const struct etch_line_place *place = &c->names->places.v[item->place];
    const char *line;
    char note[256];

    if (!step)
        return;
    etch__sketch_step__init(step);
    step->thread = column[item->thread];
    step->place = etch_compose_place(c, item->place);
    line = c->options->source ? c->options->source(c->options->source_context, place->file, place->line) : NULL;
    while (line && (*line == ' ' || *line == '\t'))
        line++;
    step->text = etch_compose_text(c, line);
    step->count = item->count;
    step->failing = !item->not_yet && is_failing(c, item);
    step->rank = rank;
    step->depth = item->depth > base_depth ? item->depth - base_depth : 0;
    step->statement = place->statement ? c->options->slice->statements[place->statement - 1]->id : 0;
    note_of(c, item, step->failing, note, sizeof(note));
    step->note = etch_compose_text(c, note);
    step->lost_before = c->run->threads.v[item->thread].lost;
    etch_layout_add_values(c, step, item);
    etch_passing_fill(c, step, item);
    link_predictors(c, step, item);
    item->step = (uint32_t)c->sketch->n_steps;
    etch_compose_push(c, &c->sketch->steps, &c->sketch->n_steps, step);
}

static bool is_drawn(const struct composition *c, uint32_t thread)
{
    for (size_t i = 0; i < c->items.n; i++)
        if (c->items.v[i].thread == thread)
            return true;
    return false;
}

static void add_threads(struct composition *c, uint32_t *column, uint32_t *base_depth)
{
    for (uint32_t i = 0; i < c->run->threads.n; i++) {
        const struct etch_run_thread *t = &c->run->threads.v[i];
        Etch__SketchThread *to;
        char made[300] = "";

        base_depth[i] = UINT32_MAX;
        for (size_t k = 0; k < c->items.n; k++)
            if (c->items.v[k].thread == i && !c->items.v[k].not_yet && c->items.v[k].depth < base_depth[i])
                base_depth[i] = c->items.v[k].depth;
        column[i] = (uint32_t)c->sketch->n_threads;
        to = is_drawn(c, i) ? etch_compose_new(c, sizeof(*to)) : NULL;
        if (!to)
            continue;
        etch__sketch_thread__init(to);
        to->name = etch_compose_text(c, t->name ? t->name : "thread");
        if (i == 0) {
            snprintf(made, sizeof(made), "main");
        } else if (t->made_at < c->names->places.n) {
            snprintf(made, sizeof(made), "%s:%u", etch_path_name(c->names->places.v[t->made_at].file),
                     c->names->places.v[t->made_at].line);
        }
        to->made_by = etch_compose_text(c, made);
        to->failing = i == c->run->failing_thread;
        etch_compose_push(c, &c->sketch->threads, &c->sketch->n_threads, to);
    }
}

static void add_stack(struct composition *c, uint32_t i, const uint32_t *column)
{
    const struct etch_run_thread *t = &c->run->threads.v[i];
    Etch__SketchStack *to = etch_compose_new(c, sizeof(*to));

    if (!to)
        return;
    etch__sketch_stack__init(to);
    to->thread = etch_compose_text(c, t->name ? t->name : "thread");
    to->inside = etch_compose_text(c, t->wait_in);
    to->failing = t->part;
    if (is_drawn(c, i)) {
        to->drawn_case = ETCH__SKETCH_STACK__DRAWN_COLUMN;
        to->column = column[i];
    }
    for (size_t k = 0; k < t->stack.n; k++)
        etch_compose_push(c, &to->frames, &to->n_frames, etch_compose_place(c, t->stack.v[k]));
    for (size_t k = 0; k < t->arguments.n; k++)
        etch_compose_push(c, &to->arguments, &to->n_arguments, etch_compose_text(c, t->arguments.v[k]));
    etch_compose_push(c, &c->sketch->stacks, &c->sketch->n_stacks, to);
}

/* Where each thread stood. Those that failed, or waited in a hang, come first. */
static void add_stacks(struct composition *c, const uint32_t *column)
{
    for (int failing = 1; failing >= 0; failing--)
        for (uint32_t i = 0; i < c->run->threads.n; i++)
            if (c->run->threads.v[i].part == failing && c->run->threads.v[i].stack.n)
                add_stack(c, i, column);
}

/* ---- Arrows ---- */

static void add_order(struct composition *c, uint32_t before, uint32_t after, const char *evidence, bool predictor)
{
    Etch__SketchOrder *o = etch_compose_new(c, sizeof(*o));

    if (!o)
        return;
    etch__sketch_order__init(o);
    o->before = before;
    o->after = after;
    o->evidence = etch_compose_text(c, evidence);
    o->predictor = predictor;
    etch_compose_push(c, &c->sketch->orders, &c->sketch->n_orders, o);
}

static void add_cause_orders(struct composition *c)
{
    uint32_t at[ETCH_PREDICTOR_ACCESSES];
    size_t n = c->top ? etch_predictor_instance(c->top, c->run, at) : 0;

    for (size_t i = 1; i < n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[at[i - 1]], *b = &c->run->accesses.v[at[i]];
        const struct layout_item *x = find_item(c, a->thread, a->place, a->nth);
        const struct layout_item *y = find_item(c, b->thread, b->place, b->nth);
        char why[256];

        etch_run_why(c->run, a, b, why, sizeof(why));
        if (x && y)
            add_order(c, x->step, y->step, why, true);
    }
}

static void add_creation_orders(struct composition *c)
{
    for (uint32_t t = 0; t < c->run->threads.n; t++) {
        const struct layout_item *made = NULL, *first = NULL;

        for (size_t i = 0; i < c->items.n; i++) {
            const struct layout_item *item = &c->items.v[i];

            if (item->thread == c->run->threads.v[t].parent && item->place == c->run->threads.v[t].made_at && !made)
                made = item;
            if (item->thread == t && !item->not_yet && !first)
                first = item;
        }
        if (made && first && made->step < first->step)
            add_order(c, made->step, first->step, "creates the thread", false);
    }
}

/* ---- What is not known ---- */

/* Rows stand below each other although nothing proves an order. The sketch reports each such pair. */
static void add_unordered(struct composition *c)
{
    for (uint32_t i = 0; i < c->items.n; i++) {
        for (uint32_t k = i + 1; k < c->items.n; k++) {
            Etch__SketchUnordered *u;

            if (c->items.v[i].rank == c->items.v[k].rank || !etch_layout_is_open(c, i, k))
                continue;
            u = etch_compose_new(c, sizeof(*u));
            if (!u)
                return;
            etch__sketch_unordered__init(u);
            u->one = c->items.v[i].step;
            u->other = c->items.v[k].step;
            u->evidence = etch_compose_text(c, "nothing recorded proves which came first");
            etch_compose_push(c, &c->sketch->unordered, &c->sketch->n_unordered, u);
        }
    }
}

/* ---- All of it ---- */

/* Statements of the best predictor are shown at the times that made the predictor true, not at their last times. */
static void choose_instance(struct composition *c)
{
    uint32_t at[ETCH_PREDICTOR_ACCESSES];
    size_t n = c->top && c->run->flow ? etch_predictor_instance(c->top, c->run, at) : 0;

    for (size_t i = 0; i < n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[at[i]];
        struct etch_run_visit visit = etch_run_visit_of(a);

        if (a->nth && !etch_run_fails_at(c->run, a->place))
            c->failed |= !etch_array_push(&c->chosen, visit);
    }
}

/* A branch predictor shows the visit that took the branch in question, not a later one. */
static void choose_branch_visit(struct composition *c)
{
    const struct etch_predictor *top = c->top && c->top->kind == ETCH_PREDICTOR_BRANCH ? c->top : NULL;
    const struct etch_run_visit *to = NULL, *visit;

    if (!top || top->to == ETCH_NOWHERE || !c->run->flow)
        return;
    to = etch_run_visited_by(c->run, c->run->failing_thread, top->to);
    if (!to)
        to = etch_run_visited(c->run, top->to);
    visit = to ? etch_run_visited_before(c->run, to->thread, top->places[0], to->seq) : NULL;
    if (visit)
        c->failed |= !etch_array_push(&c->chosen, *visit);
}

void etch_layout_fill(struct composition *c)
{
    bool *shown = etch_compose_new(c, (c->names->places.n + 1) * sizeof(*shown));
    uint32_t *column = etch_compose_new(c, (c->run->threads.n + 1) * sizeof(*column));
    uint32_t *base_depth = etch_compose_new(c, (c->run->threads.n + 1) * sizeof(*base_depth));

    if (shown && column && base_depth) {
        choose_instance(c);
        choose_branch_visit(c);
        etch_layout_choose(c, shown);
        add_visits(c, shown);
        add_accesses(c, shown);
        add_instances(c);
        etch_chain_extend(c);
        add_not_yet(c);
        if (!etch_layout_sort(c))
            c->failed = true;
        add_threads(c, column, base_depth);
        add_stacks(c, column);
        etch_layout_choose_variables(c);
        for (size_t i = 0; i < c->items.n; i++)
            add_step(c, &c->items.v[i], c->items.v[i].rank, column, base_depth[c->items.v[i].thread]);
        etch_chain_link(c);
        add_cause_orders(c);
        add_creation_orders(c);
        add_unordered(c);
    }
    free(shown);
    free(column);
    free(base_depth);
}

void etch_layout_release(struct composition *c)
{
    etch_array_free(&c->items);
    etch_array_free(&c->variables);
    etch_array_free(&c->chosen);
    free(c->before);
}
