/* SPDX-License-Identifier: MIT */
/* See lab_places.h. */
#include "diagnose/lab_places.h"

#include "base/function_name.h"
#include "binary/symbols.h"

#include <string.h>

/* Finds the innermost inlined function at `address` that is not in a system header. */
static bool find_line(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                      struct etch_frame *frame)
{
    struct etch_location at;

    memset(&at, 0, sizeof(at));
    if (address <= image->start || address - image->start >= image->size)
        return false;
    etch_symbols_find(symbols, image, address - 1, &at); /* the call itself, not the return address */
    for (const struct etch_frame *f = &at.frame; f; f = f->caller)
        if (f->file && f->line && !etch_file_is_system(f->file)) {
            *frame = *f;
            return true;
        }
    return false;
}

static uint32_t place_of(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_event *e,
                         struct etch_names *names)
{
    struct etch_frame frame;
    bool found = find_line(symbols, image, e->site, &frame);

    for (uint32_t i = 0; i < ETCH_LAB_CALLERS && !found && e->callers[i]; i++)
        found = find_line(symbols, image, e->callers[i], &frame);
    return found ? etch_names_place(names, frame.file, frame.line, frame.function ? frame.function : "") : ETCH_NOWHERE;
}

static Etch__Image image_of(const struct etch_lab_cause *cause, const char *twin)
{
    Etch__Image image = ETCH__IMAGE__INIT;

    image.path = (char *)(uintptr_t)twin;
    image.start = cause->base;
    image.size = cause->end - cause->base;
    image.prot = 5;
    return image;
}

uint32_t etch_lab_place(const struct etch_lab_cause *cause, const char *twin, const struct etch_lab_event *moment,
                        struct etch_names *names)
{
    static const struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    Etch__Image image = image_of(cause, twin);
    uint32_t place = symbols ? place_of(symbols, &image, moment, names) : ETCH_NOWHERE;

    etch_symbols_free(symbols);
    return place;
}

int etch_lab_places(const struct etch_lab_cause *cause, const char *twin, struct etch_names *names, uint32_t *places)
{
    for (uint32_t i = 0; i < cause->claim.n_moments; i++) {
        places[i] = etch_lab_place(cause, twin, &cause->claim.moments[i], names);
        if (places[i] == ETCH_NOWHERE)
            return -1;
    }
    return 0;
}
