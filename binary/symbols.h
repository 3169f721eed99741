/* SPDX-License-Identifier: MIT */
/* The place of an executed address in the source: function, file and line, and the calls that the compiler inlined
 * there. Each module has a table, made on first use and per compilation unit. Lookups are binary searches in arrays
 * that never change again, from any number of threads. Unknown fields are NULL or 0: a file with another build-id gives
 * no names. */
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

/* A frame of the source, innermost first. `caller` is the function into which the frame's function was inlined. */
struct etch_frame {
    const char *function; /* NULL: not known */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known, or code of no line */
    uint32_t column;      /* 0: not known */
    const struct etch_frame *caller;
};

/* The source of the names. */
enum etch_location_source {
    ETCH_LOCATION_NOTHING, /* no file, or another file than the one that ran: module and offset only */
    ETCH_LOCATION_ELF,
    ETCH_LOCATION_DWARF,
};

/* Strings and callers live as long as the etch_symbols. */
struct etch_location {
    enum etch_location_source source;
    const char *module;     /* path of the file, "[vdso]", "" for code without a file */
    uint64_t module_offset; /* the address in the module's own numbering; else the file offset */
    const char *symbol;     /* ELF symbol, else DWARF function; NULL: not known */
    uint64_t offset;        /* from the symbol's start */
    struct etch_frame frame;
    /* Equal for two addresses of one function, also where the compiler moved a part of it away; 0: not known. */
    uint64_t function_id;
    bool is_entry; /* the function's first instruction */
    bool is_plt;   /* a stub of the procedure linkage table, or a stub of the software recorder in its place */
    /* First address after this one where anything but the offsets and is_entry may differ. */
    uint64_t until;
};

/* Returns NULL when memory is short. */
struct etch_symbols *etch_symbols_new(const struct etch_symbols_options *options);
void etch_symbols_free(struct etch_symbols *symbols);

/* Did a lookup fail for lack of memory? */
bool etch_symbols_starved(const struct etch_symbols *symbols);

/* Finds the location of `address` within `image`. Never fails: fills in the known fields. `image` must stay until the
 * symbols are freed or etch_symbols_forget_images() is called. NULL: the address is in no known mapping. May be called
 * from several threads at once. */
void etch_symbols_find(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                       struct etch_location *location);

/* Forgets the images of earlier lookups and keeps the modules. One etch_symbols serves many recordings, and each file
 * is read once for all of them. Called before a recording is freed; locations stay valid. */
void etch_symbols_forget_images(struct etch_symbols *symbols);

/* How many files' DWARF was loaded so far. */
size_t etch_symbols_loaded(struct etch_symbols *symbols);

/* Why the module of `image` has no names, in words for a user; NULL where its file was found. Static. */
const char *etch_symbols_why_unknown(struct etch_symbols *symbols, const Etch__Image *image);

#endif
