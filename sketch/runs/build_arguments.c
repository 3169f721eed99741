/* SPDX-License-Identifier: MIT */
/* The arguments of the calls on the stacks of a failing run, as far as their values were recorded or recovered. */
#include "binary/returns.h"
#include "sketch/runs/build_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS_MAX 16u
#define FRAMES_MAX 8u /* of a stack, the innermost: debug information is read for each */

/* The newest known value of a function's own variable, of the thread's last call of the function. */
static const struct etch_run_access *newest(const struct build *b, const struct etch_run_access *list, size_t n,
                                            uint32_t thread, const char *function, const char *name)
{
    for (size_t i = n; i-- > 0;) {
        const struct etch_run_access *a = &list[i];

        if (a->thread == thread && a->known && a->operand != ETCH_NOWHERE && a->place != ETCH_NOWHERE &&
            strcmp(b->names->variables.v[a->operand], name) == 0 &&
            strcmp(b->names->places.v[a->place].function, function) == 0)
            return a;
    }
    return NULL;
}

static void put_value(char *text, size_t size, const char *name, uint64_t value, bool first)
{
    size_t n = strlen(text);

    snprintf(text + n, size - n, value < 65536 ? "%s%.60s = %" PRIu64 : "%s%.60s = 0x%" PRIx64, first ? "" : ", ", name,
             value);
}

static void describe(struct build *b, uint32_t thread, uint64_t frame, const char *function, char *text, size_t size)
{
    const Etch__Image *image = etch_build_image_at(b, frame);
    struct etch_location location;
    char *names[PARAMETERS_MAX];
    bool any = false;
    size_t n;

    if (!image)
        return;
    etch_symbols_find(b->symbols, image, frame, &location);
    n = etch_parameters_list(image, location.module_offset, names, PARAMETERS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct etch_run_access *a = newest(b, b->run->accesses.v, b->run->accesses.n, thread, function, names[i]);

        if (!a)
            a = newest(b, b->run->recovered.v, b->run->recovered.n, thread, function, names[i]);
        if (a) {
            put_value(text, size, names[i], a->value, !any);
            any = true;
        }
        free(names[i]);
    }
}

/* A function that is on the stack more than once: values are of its innermost call. */
static bool is_innermost(const struct build *b, const struct etch_run_thread *t, size_t frame)
{
    const struct etch_line_place *places = b->names->places.v;

    for (size_t i = 0; i < frame; i++)
        if (strcmp(places[t->stack.v[i]].function, places[t->stack.v[frame]].function) == 0)
            return false;
    return true;
}

static void of_thread(struct build *b, uint32_t number)
{
    struct etch_run_thread *t = &b->run->threads.v[number];
    size_t shown = 0;

    for (size_t i = 0; i < t->frames.n && shown < t->stack.n && shown < FRAMES_MAX; i++) {
        uint64_t at = t->frames.v[i] - (i > 0);
        uint32_t place = etch_build_place_of(b, etch_build_image_at(b, t->frames.v[i]), at);
        char text[512] = "", *copy;

        if (place != t->stack.v[shown])
            continue;
        if (is_innermost(b, t, shown))
            describe(b, number, at, b->names->places.v[place].function, text, sizeof(text));
        copy = strdup(text);
        b->failed |= !copy || !etch_array_push(&t->arguments, copy);
        shown++;
    }
}

void etch_build_arguments(struct build *b)
{
    for (uint32_t i = 0; b->run->failing && i < b->run->threads.n; i++)
        of_thread(b, i);
}
