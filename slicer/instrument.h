/* SPDX-License-Identifier: MIT */
/* The software recorder's compile-time half. It adds to a module, after optimisation, the code that records the path of
 * each thread, and the tables with which the decoder reads the paths. docs/soft.md has the design. */
#ifndef ETCH_SLICER_INSTRUMENT_H
#define ETCH_SLICER_INSTRUMENT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A function of the source, at all places where it was inlined. */
struct etch_instrument_scope {
    char *function, *file;
};

struct etch_instrument_options {
    const char *const *only; /* names of functions, or of files (with a dot in them) */
    size_t n_only;
    const struct etch_instrument_scope *scopes;
    size_t n_scopes; /* without names and scopes: all */
    bool local;      /* calls within a file are not for other modules to replace (-fno-semantic-interposition) */
    bool lab;        /* for a lab build: the module calls the lab's runtime. Functions have no plain copies */
};

struct etch_instrument_count {
    size_t functions, skipped; /* with a recorder; with a body but without */
    size_t nodes, segments;
};

/* Reads bitcode from one file and writes it, with the recorder, to another. `count` may be NULL. Returns 0, or -1 with
 * `err` set. */
int etch_instrument(const char *from, const char *to, const struct etch_instrument_options *options,
                    struct etch_instrument_count *count, struct etch_error *err);

#endif
