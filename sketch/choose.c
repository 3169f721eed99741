/* SPDX-License-Identifier: MIT */
/* Which statements a sketch shows: where it failed, what the best predictors speak of, how the deciding values came to
 * be, who made the threads. Where threads have no part in it, the way of the data to the failure. */
#include "sketch/layout.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 24u /* statements beside those that must be seen */

static bool is_threaded(const struct composition *c)
{
    return c->top && c->top->kind <= ETCH_PREDICTOR_ORDER;
}

static void mark(const struct composition *c, bool *shown, uint32_t place)
{
    if (place < c->names->places.n)
        shown[place] = true;
}

/* Where it failed; of a hang, where each thread stands that has a part in it. */
static void mark_failure(const struct composition *c, bool *shown)
{
    const Etch__Failure *f = c->run->failure;

    mark(c, shown, c->run->failing_place);
    if (f->kind != ETCH__FAILURE_KIND__FAILURE_HANG)
        return;
    for (size_t i = 0; i < c->run->threads.n; i++)
        for (size_t k = 0; k < f->n_threads; k++)
            if (f->threads[k]->tid == c->run->threads.v[i].tid)
                mark(c, shown, c->run->threads.v[i].wait_place);
}

static void mark_predictors(const struct composition *c, bool *shown)
{
    for (unsigned kind = 0; kind <= ETCH_PREDICTOR_BRANCH; kind++) {
        const struct etch_predictor *p = c->best[kind];

        /* Beside a cause among threads, a branch tells only what came of it. */
        if (!p || (p != c->top && p->f < c->top->f - 1e-9) ||
            (is_threaded(c) && (kind == ETCH_PREDICTOR_BRANCH || (p != c->top && kind == ETCH_PREDICTOR_ATOMICITY))))
            continue;
        for (uint32_t i = 0; i < p->n_places; i++)
            mark(c, shown, p->places[i]);
    }
}

/* Who wrote what decides, and what the failing thread had seen of it before. */
static void mark_deciding(const struct composition *c, bool *shown)
{
    uint32_t at[3];
    size_t n = etch_predictor_instance(c->top, c->run, at);
    const struct etch_run_access *last = n ? &c->run->accesses.v[at[n - 1]] : NULL;
    uint32_t before = ETCH_NOWHERE;

    for (size_t i = 0; last && i < c->run->accesses.n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[i];

        if (a->object != last->object || a->object == ETCH_NOWHERE || a->place == ETCH_NOWHERE ||
            !c->names->places.v[a->place].statement)
            continue;
        if (a->write)
            mark(c, shown, a->place);
        if (a->thread == last->thread && a < last && a->place != last->place)
            before = a->place;
    }
    mark(c, shown, before);
}

/* Who wrote what decides, where no other thread has a part in it: by the variable, since it may be a thread's own. */
static void mark_writers(const struct composition *c, bool *shown)
{
    for (size_t i = 0; i < c->run->accesses.n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[i];

        if (a->write && a->variable == c->top->variable && a->place < c->names->places.n &&
            c->names->places.v[a->place].statement)
            shown[a->place] = true;
    }
}

static bool carries_data(const Etch__Statement *s)
{
    for (size_t i = 0; i < s->n_roles; i++)
        if (s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_DATA || s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_MEMORY ||
            s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_ARGUMENT || s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_RETURN)
            return true;
    return false;
}

static uint32_t place_of_statement(const struct composition *c, const Etch__Statement *s)
{
    return etch_names_find_place(c->names, s->place->file, s->place->line, s->place->function);
}

/* Whether a function has no part in it yet: nothing in it is shown before the way of the data is, and it is not main.
 * What it does is the inside of a call, which is shown as one. */
static bool is_inside(const struct composition *c, const bool *seeds, const char *function)
{
    for (size_t i = 0; i < c->names->places.n; i++)
        if (seeds[i] && strcmp(c->names->places.v[i].function, function) == 0)
            return false;
    return strcmp(function, "main") != 0;
}

/* The way of the data: what ran and fed, directly or not, a statement that is shown. */
static void mark_sources(const struct composition *c, bool *shown)
{
    const Etch__Slice *slice = c->options->slice;
    bool *seeds = malloc(c->names->places.n + 1), more = seeds != NULL;

    if (seeds)
        memcpy(seeds, shown, c->names->places.n);
    while (more) {
        more = false;
        for (size_t i = 0; i < slice->n_statements; i++) {
            const Etch__Statement *s = slice->statements[i];
            uint32_t place = place_of_statement(c, s);

            if (place == ETCH_NOWHERE || shown[place] || !carries_data(s) || !etch_run_visited(c->run, place) ||
                is_inside(c, seeds, s->place->function))
                continue;
            for (size_t k = 0; k < s->n_because && !shown[place]; k++) {
                uint32_t nearer = s->because[k] < slice->n_statements
                                      ? place_of_statement(c, slice->statements[s->because[k]])
                                      : ETCH_NOWHERE;

                if (nearer != ETCH_NOWHERE && shown[nearer])
                    shown[place] = more = true;
            }
        }
    }
    free(seeds);
}

/* What a thread did within a step that was torn. */
static void mark_between(const struct composition *c, bool *shown)
{
    uint32_t at[3];
    size_t n = c->top->kind == ETCH_PREDICTOR_ATOMICITY ? etch_predictor_instance(c->top, c->run, at) : 0;
    const struct etch_run_access *first = n == 3 ? &c->run->accesses.v[at[0]] : NULL;
    const struct etch_run_access *last = n == 3 ? &c->run->accesses.v[at[2]] : NULL;

    for (size_t i = 0; first && i < c->run->visits.n; i++) {
        const struct etch_run_visit *v = &c->run->visits.v[i];

        if (v->thread == first->thread && v->seq > first->seq && v->seq < last->seq &&
            c->names->places.v[v->place].statement)
            shown[v->place] = true;
    }
}

static void mark_creation(const struct composition *c, bool *shown)
{
    for (size_t i = 0; i < c->run->threads.n; i++) {
        uint32_t made_at = c->run->threads.v[i].made_at;
        bool used = false;

        for (size_t k = 0; k < c->run->visits.n; k++)
            used |= c->run->visits.v[k].thread == i && shown[c->run->visits.v[k].place];
        if (used && made_at < c->names->places.n && c->names->places.v[made_at].statement)
            mark(c, shown, made_at);
    }
}

static void mark_executed(const struct composition *c, bool *shown, uint32_t distance)
{
    for (size_t i = 0; i < c->run->visits.n; i++) {
        const struct etch_line_place *p = &c->names->places.v[c->run->visits.v[i].place];

        if (p->statement && p->distance <= distance)
            shown[c->run->visits.v[i].place] = true;
    }
}

/* ---- What is too much ---- */

struct candidate {
    uint32_t place, distance;
    uint64_t hi; /* when it last ran */
};

static int by_nearness(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;

    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    if (a->hi != b->hi)
        return a->hi > b->hi ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Keeps a picture that a reader can take in: beside what must be seen, the statements nearest to the failure, by
 * dependences and then by time. */
static void keep_nearest(const struct composition *c, bool *shown, const bool *must)
{
    ETCH_ARRAY(struct candidate) list = {0};
    bool good = true;

    for (uint32_t place = 0; place < c->names->places.n; place++) {
        const struct etch_run_visit *v = etch_run_visited(c->run, place);
        struct candidate candidate = {place, c->names->places.v[place].distance, v ? v->hi : 0};

        if (shown[place] && !must[place])
            good &= etch_array_push(&list, candidate);
    }
    if (good && list.n > SHOWN_MAX) {
        qsort(list.v, list.n, sizeof(*list.v), by_nearness);
        for (size_t i = SHOWN_MAX; i < list.n; i++)
            shown[list.v[i].place] = false;
    }
    etch_array_free(&list);
}

void etch_layout_choose(const struct composition *c, bool *shown)
{
    bool *must = calloc(c->names->places.n + 1, sizeof(*must));

    mark_failure(c, shown);
    if (c->top)
        mark_predictors(c, shown);
    if (is_threaded(c)) {
        mark_deciding(c, shown);
        mark_between(c, shown);
    }
    if (must)
        memcpy(must, shown, c->names->places.n * sizeof(*must));
    if (c->top && !is_threaded(c)) {
        mark_writers(c, shown);
        mark_sources(c, shown);
    }
    if (c->options->all || !c->top)
        mark_executed(c, shown, UINT32_MAX);
    if (must && !c->options->all)
        keep_nearest(c, shown, must);
    /* Who made the threads tells how an order came about; where a step was torn, it tells nothing. */
    if (!c->top || c->top->kind != ETCH_PREDICTOR_ATOMICITY)
        mark_creation(c, shown);
    free(must);
}
