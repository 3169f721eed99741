/* SPDX-License-Identifier: MIT */
/* What an executed address is in the source: function, file and line, and the calls that the compiler inlined there.
 * One table per module, made on first use and per compilation unit; lookups are binary searches in arrays that never
 * change again, from any number of threads. What is not known is NULL or 0: a file whose build-id differs names
 * nothing. */
#ifndef ETCH_BINARY_SYMBOLS_H
#define ETCH_BINARY_SYMBOLS_H

#include "base/error.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

struct etch_symbols;

struct etch_symbols_options {
    /* Folder to look for binaries and debug files in, by their path below it, before the path itself; NULL: none. */
    const char *sysroot;
    const char *debug_dir; /* holds .build-id/, asked before /usr/lib/debug; NULL: none */
    const char *beside;    /* folder of the recording: binaries by their base name; NULL: none */
    bool mangled;          /* names as the linker has them */
};

/* One frame of the source: innermost first, `caller` is the function into which this one was inlined. */
struct etch_frame {
    const char *function; /* NULL: not known */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known, or code of no line */
    uint32_t column;      /* 0: not known */
    const struct etch_frame *caller;
};

/* Where the names are from. */
enum etch_location_source {
    ETCH_LOCATION_NOTHING, /* no file, or not the one that ran: module and offset only */
    ETCH_LOCATION_ELF,
    ETCH_LOCATION_DWARF,
};

/* Strings and callers live as long as the etch_symbols. */
struct etch_location {
    enum etch_location_source source;
    const char *module;     /* path of the file, "[vdso]", "" for code without a file */
    uint64_t module_offset; /* the address as the module's own symbols count it; file offset where that is not known */
    const char *symbol;     /* ELF symbol, else DWARF function; NULL: not known */
    uint64_t offset;        /* from the symbol's start */
    struct etch_frame frame;
    /* Equal for two addresses of one function, also where the compiler moved a part of it away; 0: not known. */
    uint64_t function_id;
    bool is_entry; /* the function's first instruction */
    bool is_plt;   /* a stub of the procedure linkage table, or one that the software recorder put in its place */
    /* First address after this one where anything but the offsets and is_entry may differ. */
    uint64_t until;
};

/* Returns NULL when memory is short. */
struct etch_symbols *etch_symbols_new(const struct etch_symbols_options *options);
void etch_symbols_free(struct etch_symbols *symbols);

/* Whether something was not found because there was no memory to look for it. */
bool etch_symbols_starved(const struct etch_symbols *symbols);

/* What `address` (within `image`) is. Never fails: fills in what is known. `image` must stay until the symbols are
 * freed, or told to forget it; NULL where the address is in no known mapping. May be called from several threads at
 * once. */
void etch_symbols_find(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                       struct etch_location *location);

/* Forgets the images that were asked about and keeps the modules: one etch_symbols serves many recordings, a file is
 * read once for all of them. Called before a recording is freed; locations stay good. */
void etch_symbols_forget_images(struct etch_symbols *symbols);

/* How many files' DWARF was loaded so far. */
size_t etch_symbols_loaded(struct etch_symbols *symbols);

/* Why the module of `image` has no names, in words for a user; NULL where its file was found. Static. */
const char *etch_symbols_why_unknown(struct etch_symbols *symbols, const Etch__Image *image);

#endif
