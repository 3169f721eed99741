/* SPDX-License-Identifier: MIT */
/* A sketch as people and programs want it: in a terminal, as one HTML file, as JSON (docs/sketch.schema.json), as SARIF
 * for code hosts. Each renderer is a function of the message and its options alone: the same sketch gives the same
 * bytes. Each returns text to be freed, ended by a NUL that `size` does not count, or NULL where memory is short. */
#ifndef ETCH_SKETCH_RENDER_H
#define ETCH_SKETCH_RENDER_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_render_terminal {
    unsigned width; /* columns; taken as 40 to 400 */
    bool colour;    /* ECMA-48 sequences */
    bool unicode;   /* lines and arrows, and unchanged source text; otherwise ASCII only */
    bool all;       /* every predictor, not the best one of each kind */
};

char *etch_render_terminal(const Etch__Sketch *sketch, const struct etch_render_terminal *options, size_t *size);

/* Source text around a step. Line `line` of `file` without its end, valid until the next call; NULL: not available, or
 * not the source that the program was built from. */
typedef const char *etch_render_source(void *context, const char *file, uint32_t line);

struct etch_render_html {
    etch_render_source *source; /* may be NULL */
    void *source_context;
};

/* One file that loads nothing: it works from file://, by mail and in print. */
char *etch_render_html(const Etch__Sketch *sketch, const struct etch_render_html *options, size_t *size);

char *etch_render_json(const Etch__Sketch *sketch, size_t *size);

/* A script for gdb: breakpoints at the steps, which print their values. */
char *etch_render_gdb(const Etch__Sketch *sketch, size_t *size);

/* SARIF 2.1.0. Files below the folder `root`, if not NULL, are named relative to it, as code hosts want. */
char *etch_render_sarif(const Etch__Sketch *sketch, const char *root, size_t *size);

#endif
