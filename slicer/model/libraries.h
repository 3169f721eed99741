/* SPDX-License-Identifier: MIT */
/* The program's own shared libraries: libraries that the dynamic loader loads for the program and that have bitcode.
 * Private to slicer/. */
#ifndef ETCH_SLICER_MODEL_LIBRARIES_H
#define ETCH_SLICER_MODEL_LIBRARIES_H

#include "base/array.h"

typedef ETCH_ARRAY(char *) etch_paths;

/* Adds the libraries that `program` needs, and the libraries that these need, in the loader's order. A library that
 * cannot be found or read is left out: its bitcode cannot be read. False when memory is short. */
bool etch_libraries_find(const char *program, etch_paths *libraries);

/* True for an ELF file with bitcode. */
bool etch_library_has_bitcode(const char *path);

/* Adds a path, unless the list has it already. False when memory is short. */
bool etch_paths_add(etch_paths *paths, const char *path);

void etch_paths_release(etch_paths *paths);

#endif
