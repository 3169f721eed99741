/* SPDX-License-Identifier: MIT */
/* Private: a shared library of the program's own, whose code goes into the lab build itself. Its bitcode is changed, so
 * that names mean there what they mean to the dynamic loader. */
#ifndef ETCH_SLICER_LAB_LIBRARY_H
#define ETCH_SLICER_LAB_LIBRARY_H

#include "base/error.h"
#include "base/strings.h"
#include "slicer/link_note.h"

#include <llvm-c/Core.h>

struct etch_lab_library {
    char *path;
    const uint8_t *bytes;
    size_t size;
    unsigned number; /* from 1 */
    struct etch_link_note note;
    struct etch_strings inner; /* functions and variables that only the library itself uses */
};

typedef ETCH_ARRAY(struct etch_lab_library) etch_lab_libraries;

/* Finds the libraries of the program that etch cc linked, in the loader's order, and the names within each. Returns 0,
 * or -1 with `err` set. */
int etch_lab_libraries_open(etch_lab_libraries *libraries, const char *program, struct etch_error *err);
void etch_lab_libraries_close(etch_lab_libraries *libraries);

/* Changes a module of the library. A name that the library does not export becomes one that nobody else has. A name
 * that it exports becomes weak: the program's own definition counts for the library too, as the loader has it. */
void etch_lab_library_adapt(const struct etch_lab_library *library, LLVMModuleRef module);

#endif
