/* SPDX-License-Identifier: MIT */
/* Numbers for places and variables, and what a run owns; see run.h. */
#include "sketch/run.h"
#include "sketch/run_order.h"

#include <stdlib.h>
#include <string.h>

void etch_names_release(struct etch_names *names)
{
    for (size_t i = 0; i < names->places.n; i++) {
        free(names->places.v[i].file);
        free(names->places.v[i].function);
    }
    for (size_t i = 0; i < names->variables.n; i++)
        free(names->variables.v[i]);
    etch_array_free(&names->places);
    etch_array_free(&names->variables);
    etch_index_release(&names->by_place);
    etch_index_release(&names->by_variable);
}

static uint64_t hash_place(const char *file, uint32_t line, const char *function)
{
    uint64_t hash = etch_hash(ETCH_HASH_START, file, strlen(file) + 1);

    hash = etch_hash(hash, function, strlen(function) + 1);
    return etch_hash(hash, &line, sizeof(line));
}

uint32_t etch_names_find_place(const struct etch_names *names, const char *file, uint32_t line, const char *function)
{
    uint64_t hash = hash_place(file, line, function);
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&names->by_place, hash, &probe)) != ETCH_INDEX_NONE)
        if (names->places.v[i].line == line && strcmp(names->places.v[i].file, file) == 0 &&
            strcmp(names->places.v[i].function, function) == 0)
            return i;
    return ETCH_NOWHERE;
}

uint32_t etch_names_place(struct etch_names *names, const char *file, uint32_t line, const char *function)
{
    struct etch_line_place place = {.line = line, .distance = UINT32_MAX};
    uint32_t number = etch_names_find_place(names, file, line, function);

    if (number != ETCH_NOWHERE)
        return number;
    number = (uint32_t)names->places.n;
    place.file = strdup(file);
    place.function = strdup(function);
    if (place.file && place.function && etch_array_reserve(&names->places, names->places.n + 1) &&
        etch_index_add(&names->by_place, hash_place(file, line, function), number)) {
        names->places.v[names->places.n++] = place;
        return number;
    }
    free(place.file);
    free(place.function);
    return ETCH_NOWHERE;
}

uint32_t etch_names_variable(struct etch_names *names, const char *name)
{
    uint64_t hash = etch_hash(ETCH_HASH_START, name, strlen(name));
    size_t probe = 0;
    uint32_t i;
    char *copy;

    while ((i = etch_index_next(&names->by_variable, hash, &probe)) != ETCH_INDEX_NONE)
        if (strcmp(names->variables.v[i], name) == 0)
            return i;
    copy = strdup(name);
    if (copy && etch_array_reserve(&names->variables, names->variables.n + 1) &&
        etch_index_add(&names->by_variable, hash, (uint32_t)names->variables.n)) {
        names->variables.v[names->variables.n++] = copy;
        return (uint32_t)(names->variables.n - 1);
    }
    free(copy);
    return ETCH_NOWHERE;
}

int etch_names_slice(struct etch_names *names, const Etch__Slice *slice)
{
    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];
        uint32_t number = etch_names_place(names, s->place->file, s->place->line, s->place->function);
        struct etch_line_place *place;

        if (number == ETCH_NOWHERE)
            return -1;
        place = &names->places.v[number];
        if (!place->statement || s->distance < place->distance) {
            place->statement = (uint32_t)i + 1;
            place->distance = s->distance;
        }
    }
    return 0;
}

void etch_run_free(struct etch_run *run)
{
    if (!run)
        return;
    for (size_t i = 0; i < run->threads.n; i++) {
        free(run->threads.v[i].name);
        free(run->threads.v[i].wait_in);
        etch_array_free(&run->threads.v[i].frames);
    }
    for (size_t i = 0; i < run->losses.n; i++)
        etch__loss__free_unpacked(run->losses.v[i], NULL);
    if (run->failure)
        etch__failure__free_unpacked(run->failure, NULL);
    etch_array_free(&run->threads);
    etch_array_free(&run->visits);
    etch_array_free(&run->first_visit);
    etch_array_free(&run->last_access);
    etch_index_release(&run->last_value);
    etch_array_free(&run->branches);
    etch_array_free(&run->accesses);
    etch_array_free(&run->syncs);
    etch_array_free(&run->watched);
    etch_array_free(&run->losses);
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
