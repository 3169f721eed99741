/* SPDX-License-Identifier: MIT */
/* See lab_places.h. */
#include "diagnose/lab_places.h"

#include "base/function_name.h"
#include "binary/symbols.h"

#include <string.h>

#define CHAIN (ETCH_LAB_CALLERS + 1)

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

static uint32_t place_at(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                         struct etch_names *names)
{
    struct etch_frame frame;

    return find_line(symbols, image, address, &frame)
               ? etch_names_place(names, frame.file, frame.line, frame.function ? frame.function : "")
               : ETCH_NOWHERE;
}

/* The places of the moment and of its callers, the innermost first. Returns how many have a line. */
static uint32_t chain_of(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_event *e,
                         struct etch_names *names, uint32_t chain[CHAIN])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < CHAIN; i++) {
        uint64_t address = i ? e->callers[i - 1] : e->site;
        uint32_t place = address ? place_at(symbols, image, address, names) : ETCH_NOWHERE;

        if (place != ETCH_NOWHERE)
            chain[n++] = place;
    }
    return n;
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
    uint32_t chain[CHAIN], n = symbols ? chain_of(symbols, &image, moment, names, chain) : 0;

    etch_symbols_free(symbols);
    return n ? chain[0] : ETCH_NOWHERE;
}

/* The places of one moment, and which of them is shown. */
struct shown {
    uint32_t chain[CHAIN], n, level;
};

/* A function that takes a lock for its callers says little: two locks at one line are told apart by the callers. */
static void tell_apart(struct shown *a, struct shown *b)
{
    uint32_t level = 0;

    if (a->chain[a->level] != b->chain[b->level])
        return;
    while (level < a->n && level < b->n && a->chain[level] == b->chain[level])
        level++;
    if (level < a->n && level < b->n)
        a->level = b->level = level;
}

int etch_lab_places(const struct etch_lab_cause *cause, const char *twin, struct etch_names *names, uint32_t *places)
{
    static const struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    const struct etch_claim *c = &cause->claim;
    Etch__Image image = image_of(cause, twin);
    struct shown all[ETCH_LAB_RULES] = {0};
    bool good = symbols != NULL;

    for (uint32_t i = 0; i < c->n_moments && good; i++) {
        all[i].n = chain_of(symbols, &image, &c->moments[i], names, all[i].chain);
        good = all[i].n > 0;
    }
    for (uint32_t i = 0; i < c->n_moments && good; i++)
        for (uint32_t k = i + 1; k < c->n_moments; k++)
            if (c->moments[i].sync && c->moments[k].sync)
                tell_apart(&all[i], &all[k]);
    for (uint32_t i = 0; i < c->n_moments && good; i++)
        places[i] = all[i].chain[all[i].level];
    etch_symbols_free(symbols);
    return good ? 0 : -1;
}
