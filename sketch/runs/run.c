/* SPDX-License-Identifier: MIT */
/* Questions about one run, and its end; see run.h. */
#include "sketch/run.h"
#include "sketch/runs/order.h"

#include <stdlib.h>
#include <string.h>

void etch_run_free(struct etch_run *run)
{
    if (!run)
        return;
    etch_run_forget_facts(run);
    for (size_t i = 0; i < run->threads.n; i++) {
        free(run->threads.v[i].name);
        free(run->threads.v[i].wait_in);
        free(run->threads.v[i].unseen);
        for (size_t k = 0; k < run->threads.v[i].arguments.n; k++)
            free(run->threads.v[i].arguments.v[k]);
        etch_array_free(&run->threads.v[i].arguments);
        etch_array_free(&run->threads.v[i].frames);
        etch_array_free(&run->threads.v[i].stack);
    }
    for (size_t i = 0; i < run->command.n; i++)
        free(run->command.v[i]);
    etch_array_free(&run->command);
    for (size_t i = 0; i < run->losses.n; i++)
        etch__loss__free_unpacked(run->losses.v[i], NULL);
    if (run->failure)
        etch__failure__free_unpacked(run->failure, NULL);
    etch_array_free(&run->threads);
    etch_array_free(&run->visits);
    etch_array_free(&run->history);
    etch_array_free(&run->first_visit);
    etch_array_free(&run->last_access);
    etch_index_release(&run->last_value);
    etch_array_free(&run->branches);
    etch_array_free(&run->branch_pairs);
    etch_array_free(&run->accesses);
    etch_array_free(&run->recovered);
    etch_array_free(&run->syncs);
    etch_array_free(&run->watched);
    etch_array_free(&run->watched_operands);
    etch_array_free(&run->sited);
    etch_array_free(&run->sited_operands);
    etch_array_free(&run->sites);
    etch_array_free(&run->losses);
    etch_array_free(&run->comparison_points);
    etch_array_free(&run->early_comparison_points);
    etch_run_order_free(run->order);
    free(run->name);
    free(run->bucket);
    free(run);
}

int etch_run_compare(const struct etch_run *run, const struct etch_run_access *a, const struct etch_run_access *b)
{
    if (a->thread == b->thread)
        return a < b ? -1 : a > b;
    return run->order ? etch_run_order_compare(run->order, a->event, b->event) : 0;
}

void etch_run_why(const struct etch_run *run, const struct etch_run_access *a, const struct etch_run_access *b,
                  char *text, size_t size)
{
    text[0] = '\0';
    if (run->order)
        etch_run_order_why(run->order, a->event, b->event, text, size);
}

const struct etch_run_visit *etch_run_visited(const struct etch_run *run, uint32_t place)
{
    if (run->first_visit.n)
        return place < run->first_visit.n && run->first_visit.v[place] ? &run->visits.v[run->first_visit.v[place] - 1]
                                                                       : NULL;
    for (size_t i = 0; i < run->visits.n; i++)
        if (run->visits.v[i].place == place)
            return &run->visits.v[i];
    return NULL;
}

const struct etch_run_visit *etch_run_visited_by(const struct etch_run *run, uint32_t thread, uint32_t place)
{
    for (size_t i = 0; i < run->visits.n; i++)
        if (run->visits.v[i].place == place && run->visits.v[i].thread == thread)
            return &run->visits.v[i];
    return NULL;
}

struct etch_run_visit etch_run_visit_of(const struct etch_run_access *a)
{
    return (struct etch_run_visit){.thread = a->thread,
                                   .place = a->place,
                                   .count = a->nth,
                                   .seq = a->seq,
                                   .lo = a->lo,
                                   .hi = a->hi,
                                   .depth = a->depth};
}

const struct etch_run_visit *etch_run_visited_before(const struct etch_run *run, uint32_t thread, uint32_t place,
                                                     uint64_t seq)
{
    const struct etch_run_visit *last = etch_run_visited_by(run, thread, place), *found = NULL;

    if (!last || last->seq < seq)
        return last;
    for (size_t i = 0; i < run->history.n; i++) {
        const struct etch_run_visit *v = &run->history.v[i];

        if (v->count && v->thread == thread && v->place == place && v->seq < seq && (!found || v->seq > found->seq))
            found = v;
    }
    return found;
}

const struct etch_run_visit *etch_run_visited_after(const struct etch_run *run, uint32_t thread, uint32_t place,
                                                    uint64_t seq)
{
    const struct etch_run_visit *last = etch_run_visited_by(run, thread, place), *found = last;

    if (!last || last->seq <= seq)
        return NULL;
    for (size_t i = 0; i < run->history.n; i++) {
        const struct etch_run_visit *v = &run->history.v[i];

        if (v->count && v->thread == thread && v->place == place && v->seq > seq && v->seq < found->seq)
            found = v;
    }
    return found;
}

bool etch_run_accessed(const struct etch_run *run, uint32_t place)
{
    if (run->last_access.n)
        return place < run->last_access.n && run->last_access.v[place];
    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place)
            return true;
    return false;
}

static bool is_value_of(const struct etch_run_access *a, uint32_t place, uint32_t variable, bool write)
{
    return a->place == place && a->variable == variable && a->known && a->write == write;
}

static uint64_t hash_value(uint32_t place, uint32_t variable, bool write)
{
    uint32_t key[3] = {place, variable, write};

    return etch_hash(ETCH_HASH_START, key, sizeof(key));
}

const struct etch_run_access *etch_run_last_value(const struct etch_run *run, uint32_t place, uint32_t variable,
                                                  bool write)
{
    size_t probe = 0;
    uint32_t at;

    if (run->last_access.n) {
        while ((at = etch_index_next(&run->last_value, hash_value(place, variable, write), &probe)) != ETCH_INDEX_NONE)
            if (is_value_of(&run->accesses.v[at], place, variable, write))
                return &run->accesses.v[at];
        return NULL;
    }
    for (size_t i = run->accesses.n; i-- > 0;)
        if (is_value_of(&run->accesses.v[i], place, variable, write))
            return &run->accesses.v[i];
    return NULL;
}

static bool note(struct etch_by_place *by_place, uint32_t place, size_t number)
{
    while (by_place->n <= place)
        if (!etch_array_push(by_place, 0))
            return false;
    by_place->v[place] = (uint32_t)number + 1;
    return true;
}

int etch_run_index(struct etch_run *run)
{
    run->first_visit.n = run->last_access.n = 0;
    etch_index_release(&run->last_value);
    for (size_t i = run->visits.n; i-- > 0;)
        if (!note(&run->first_visit, run->visits.v[i].place, i))
            return -1;
    for (size_t i = run->accesses.n; i-- > 0;) {
        const struct etch_run_access *a = &run->accesses.v[i];

        if (a->place == ETCH_NOWHERE)
            continue;
        if (!note(&run->last_access, a->place, i))
            return -1;
        if (a->known && !etch_run_last_value(run, a->place, a->variable, a->write) &&
            !etch_index_add(&run->last_value, hash_value(a->place, a->variable, a->write), (uint32_t)i))
            return -1;
    }
    return 0;
}

bool etch_run_may_have(const struct etch_run *run, uint32_t place)
{
    const struct etch_line_place *places = run->names ? run->names->places.v : NULL;

    for (size_t i = 0; places && i < run->threads.n; i++) {
        const struct etch_run_thread *t = &run->threads.v[i];
        bool here = t->unseen && strcmp(t->unseen, places[place].function) == 0;

        for (size_t k = 0; t->unseen && !here && k < t->stack.n; k++)
            here = strcmp(places[t->stack.v[k]].function, places[place].function) == 0;
        if (here)
            return true;
    }
    return false;
}

bool etch_run_fails_at(const struct etch_run *run, uint32_t place)
{
    if (!run->failing || place == ETCH_NOWHERE)
        return false;
    for (size_t i = 0; run->failure->kind == ETCH__FAILURE_KIND__FAILURE_HANG && i < run->threads.n; i++)
        if (run->threads.v[i].part && run->threads.v[i].wait_place == place)
            return true;
    return place == run->failing_place;
}
