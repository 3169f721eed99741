/* SPDX-License-Identifier: MIT */
/* An executable or library on disk, as far as a recorder needs it: build-id, symbols of globals, how it is loaded.
 * libelf only; types are the decoder's business. */
#ifndef ETCH_BINARY_OBJECT_H
#define ETCH_BINARY_OBJECT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_object;

/* Opens an ELF file for x86-64. Returns 0, or -1 with `err` set. */
int etch_object_open(struct etch_object **object, const char *path, struct etch_error *err);
void etch_object_free(struct etch_object *object);

/* Whether the dynamic loader has a part in it: only then can a library be preloaded. */
bool etch_object_is_dynamic(const struct etch_object *object);

/* Whether it takes a function or variable of this name from a library. */
bool etch_object_imports(const struct etch_object *object, const char *name);

/* Whether its code asks for a system call of this number: by the C library's syscall(), or by the instruction itself. A
 * number that only looks so can be meant; one that is computed, or asked for in a library, is not found. */
bool etch_object_makes_call(const struct etch_object *object, uint32_t number);

/* What to add to the file's addresses, given where the mapping of `file_offset` starts. */
uint64_t etch_object_bias(const struct etch_object *object, uint64_t start, uint64_t file_offset);

/* Where in the file the code at an address of it stands; false where no executable part has that address. */
bool etch_object_offset(const struct etch_object *object, uint64_t address, uint64_t *offset);

/* Returns its length, at most 64; 0 where it has none. */
size_t etch_object_build_id(const struct etch_object *object, uint8_t id[64]);

struct etch_symbol {
    uint64_t address; /* in the file's own numbering */
    uint64_t size;
    bool function;
    bool thread_local_;
};

/* Finds a symbol defined here. Returns how many there are of that name (at different addresses); the first one, or the
 * global one, is in `symbol`. */
size_t etch_object_symbol(const struct etch_object *object, const char *name, struct etch_symbol *symbol);

#endif
