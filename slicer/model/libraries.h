/* SPDX-License-Identifier: MIT */
/* The program's own shared libraries: those that the dynamic loader will take for it and that have bitcode. Private to
 * slicer/. */
#ifndef ETCH_SLICER_MODEL_LIBRARIES_H
#define ETCH_SLICER_MODEL_LIBRARIES_H

#include "base/array.h"

typedef ETCH_ARRAY(char *) etch_paths;

/* Adds the libraries that `program` needs, and those that these need, in the order in which the loader takes them. What
 * cannot be found or read is left out: it has no bitcode that could be read. False when memory is short. */
bool etch_libraries_find(const char *program, etch_paths *libraries);

/* Whether a file is an ELF file with bitcode. */
bool etch_library_has_bitcode(const char *path);

/* Adds a path unless it is there. False when memory is short. */
bool etch_paths_add(etch_paths *paths, const char *path);

void etch_paths_release(etch_paths *paths);

#endif
