/* SPDX-License-Identifier: MIT */
/* The lab build: a twin of a program, made from the bitcode that etch cc embedded. Each access that other threads can
 * see calls the lab's runtime (collector/lab/), by LLVM's ThreadSanitizer pass. Functions have the software recorder,
 * which records control flow. The link is repeated as it was, but the code of the program's own shared libraries goes
 * into the twin itself. */
#ifndef ETCH_SLICER_LAB_BUILD_H
#define ETCH_SLICER_LAB_BUILD_H

#include "base/error.h"

#include <stddef.h>

struct etch_lab_build {
    const char *program;
    const char *runtime;  /* etch-lab.o */
    const char *recorder; /* etch-lab-soft.o */
    const char *folder;   /* objects and the twin go there; it exists */
    const char *twin;     /* the file to make */
    char *note;           /* gets the reason if the libraries could not be taken into the twin; else it is empty */
    size_t note_size;
};

/* Makes the twin. Returns 0, or -1 with `err` set. */
int etch_lab_build(const struct etch_lab_build *build, struct etch_error *err);

/* Calls `visit` with each shared library of the program's own, in the loader's order, until it fails. */
int etch_lab_build_each_library(const char *program, int (*visit)(void *context, const char *path, struct etch_error *),
                                void *context, struct etch_error *err);

#endif
