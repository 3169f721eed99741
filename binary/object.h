/* SPDX-License-Identifier: MIT */
/* An executable or library on disk: its type, its build-id, its symbols, its segments. Uses libelf alone, which the
 * recorder links too. Other files of this room read debug information. */
#ifndef ETCH_BINARY_OBJECT_H
#define ETCH_BINARY_OBJECT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_BUILD_ID_MAX 64u

struct etch_elf {
    bool program;        /* for x86-64, and can be run */
    bool dynamic;        /* loaded anywhere (ET_DYN) */
    uint64_t file_vaddr; /* address of file offset 0, before the file is moved */
    uint64_t end_vaddr;  /* end of the last segment */
    uint8_t build_id[ETCH_BUILD_ID_MAX];
    size_t build_id_size; /* 0: none */
};

/* Returns 0, or -1 with `err` set if the file cannot be read or is no ELF file. */
int etch_elf_read(struct etch_elf *elf, const char *path, struct etch_error *err);

/* The variable `name` of the file's symbol tables: its address in the file and its size (0: not known). Returns 0, or
 * -1 with `err` set: no such symbol, several different symbols of that name, or not a plain variable. */
int etch_elf_variable(const char *path, const char *name, uint64_t *address, uint64_t *size, struct etch_error *err);

struct etch_object;

/* Opens an ELF file for x86-64. Returns 0, or -1 with `err` set. */
int etch_object_open(struct etch_object **object, const char *path, struct etch_error *err);
void etch_object_free(struct etch_object *object);

/* Does the dynamic loader load the object? Only then can a library be preloaded. */
bool etch_object_is_dynamic(const struct etch_object *object);

/* Does the object import a function or variable of this name from a library? */
bool etch_object_imports(const struct etch_object *object, const char *name);

/* Calls `visit` with the name of each function or variable that other objects can use. */
typedef void etch_object_export_visitor(void *context, const char *name);
void etch_object_each_export(const struct etch_object *object, etch_object_export_visitor *visit, void *context);

/* Does the object's code make a system call of this number, by the C library's syscall() or by the instruction itself?
 * The search can take another constant for the number. It misses a computed number, and a call made in a library. */
bool etch_object_makes_call(const struct etch_object *object, uint32_t number);

/* The number to add to the file's addresses, if the mapping of `file_offset` starts at `start`. */
uint64_t etch_object_bias(const struct etch_object *object, uint64_t start, uint64_t file_offset);

/* Converts an address of code to its offset in the file; false if no executable segment has this address. */
bool etch_object_offset(const struct etch_object *object, uint64_t address, uint64_t *offset);

/* Returns the length of the build-id; 0: there is none. */
size_t etch_object_build_id(const struct etch_object *object, uint8_t id[ETCH_BUILD_ID_MAX]);

bool etch_object_has_section(const struct etch_object *object, const char *name);

/* A loaded segment: its place in the file and its address. */
struct etch_segment {
    uint64_t file_offset, file_size, address;
    uint32_t prot;        /* PROT_READ, ... */
    uint64_t memory_size; /* zeroed variables too */
};

/* The next loaded segment; `*at` begins at 0. False: there are no more. */
bool etch_object_next_segment(const struct etch_object *object, size_t *at, struct etch_segment *segment);

/* Entries of the dynamic section that say which libraries the file needs and where they are looked for. */
enum etch_object_dynamic { ETCH_OBJECT_NEEDED, ETCH_OBJECT_RPATH, ETCH_OBJECT_RUNPATH };

/* Calls `visit` with each such entry, in the file's order. Returns false as soon as `visit` does. */
typedef bool etch_object_dynamic_visitor(void *context, enum etch_object_dynamic entry, const char *text);
bool etch_object_each_dynamic(const struct etch_object *object, etch_object_dynamic_visitor *visit, void *context);

struct etch_symbol {
    uint64_t address; /* in the file's own numbering */
    uint64_t size;
    bool function;
    bool thread_local_;
};

/* Finds a symbol that the object defines. Returns the number of symbols of that name at different addresses. `symbol`
 * gets the global symbol, else the first. */
size_t etch_object_symbol(const struct etch_object *object, const char *name, struct etch_symbol *symbol);

/* Writes the name of the variable that begins at an address of the file's own numbering. False: there is none, or the
 * file has no symbol table. */
bool etch_object_variable_at(const struct etch_object *object, uint64_t address, char *name, size_t size);

#endif
