/* SPDX-License-Identifier: MIT */
/* Private to binary/: one module's tables. The ELF file, its debug file, symbols, and the compilation units. */
#ifndef ETCH_BINARY_SYMBOLS_MODULE_H
#define ETCH_BINARY_SYMBOLS_MODULE_H

#include "base/array.h"
#include "binary/elf_file.h"
#include "binary/spans.h"
#include "binary/symbols.h"

#include <elfutils/libdw.h>
#include <pthread.h>
#include <stdatomic.h>

struct module_load {
    uint64_t offset, size, address;
    bool executable;
};

struct module_symbol {
    uint64_t start, end;
    const char *name;            /* as the linker has it */
    _Atomic(const char *) shown; /* demangled on first use */
    uint64_t entry;              /* of the function that it is a part of; its own start for most */
    bool plt;
    bool plain, recorded; /* the software recorder's two copies of a function */
    uint64_t twin;        /* of a plain copy: the recorded one, which the debug information knows; 0: none */
};

/* A function, or a call that was inlined into one. */
struct unit_function {
    const char *name; /* NULL: not known */
    uint32_t parent;  /* the function it was inlined into; ETCH_SPAN_NONE for a real function */
    uint64_t entry;   /* of the real function */
    struct etch_frame caller;
};

struct unit_row {
    uint64_t address;
    const char *file; /* NULL: no line from here on */
    uint32_t line, column;
};

/* A compilation unit, flat. */
struct unit_table {
    ETCH_ARRAY(struct unit_function) functions;
    ETCH_ARRAY(struct unit_row) rows;
    struct etch_spans spans;
};

struct module_unit {
    Dwarf_Off offset;
    uint64_t size; /* bytes of .debug_info: bounds what a walk may visit */
    Dwarf_Die die, split;
    bool has_split;
    _Atomic(struct unit_table *) table; /* NULL until first asked for */
};

struct etch_symbols_module {
    char *path;
    Etch__Image *image; /* a copy of the first that was seen of this module */
    uint64_t number;
    const char *why; /* it has no names; NULL: it has */
    bool mangled;

    struct etch_elf_file file, debug; /* `debug`: of .gnu_debuglink or the build-id; none for most */
    Dwarf *dwarf;
    ETCH_ARRAY(struct module_load) loads;
    ETCH_ARRAY(struct module_symbol) symbols;
    struct etch_spans symbol_spans;
    struct module_unit *units;
    size_t n_units;
    struct etch_spans unit_spans;

    pthread_mutex_t lock; /* libdw, strings, and the making of unit tables */
    ETCH_ARRAY(char *) strings;
};

/* symbols_elf.c */
bool etch_symbols_module_is_code(const struct etch_symbols_module *module, uint64_t address);
bool etch_symbols_module_read_symbols(struct etch_symbols_module *module);

/* symbols_dwarf.c */
bool etch_symbols_module_read_units(struct etch_symbols_module *module);
struct unit_table *etch_symbols_unit_table_of(struct etch_symbols_module *module, struct module_unit *unit);
void etch_symbols_unit_table_free(struct unit_table *table);

/* With `lock` held: the function's whole name, or what the linker calls it where the user wants that. `linkage` or
 * `name` may be NULL, not both. NULL when memory is short. */
const char *etch_symbols_module_name(struct etch_symbols_module *module, const char *linkage, const char *name,
                                     uint32_t line);

/* With `lock` held: a copy. */
const char *etch_symbols_module_keep(struct etch_symbols_module *module, const char *text);

#endif
