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
}

uint32_t etch_names_place(struct etch_names *names, const char *file, uint32_t line, const char *function)
{
    struct etch_line_place place = {.line = line, .distance = UINT32_MAX};

    for (size_t i = 0; i < names->places.n; i++)
        if (names->places.v[i].line == line && strcmp(names->places.v[i].file, file) == 0 &&
            strcmp(names->places.v[i].function, function) == 0)
            return (uint32_t)i;
    place.file = strdup(file);
    place.function = strdup(function);
    if (place.file && place.function && etch_array_push(&names->places, place))
        return (uint32_t)(names->places.n - 1);
    free(place.file);
    free(place.function);
    return ETCH_NOWHERE;
}

uint32_t etch_names_variable(struct etch_names *names, const char *name)
{
    char *copy;

    for (size_t i = 0; i < names->variables.n; i++)
        if (strcmp(names->variables.v[i], name) == 0)
            return (uint32_t)i;
    copy = strdup(name);
    if (copy && etch_array_push(&names->variables, copy))
        return (uint32_t)(names->variables.n - 1);
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
    for (size_t i = 0; i < run->visits.n; i++)
        if (run->visits.v[i].place == place)
            return &run->visits.v[i];
    return NULL;
}
