/* SPDX-License-Identifier: MIT */
/* The lab build: a twin of a program, made from the bitcode that etch cc embedded. Each access that other threads can
 * see calls the lab's runtime (collector/lab/), by LLVM's ThreadSanitizer pass. Functions have the software recorder, which records control flow. The link is repeated
 * as it was. */
#ifndef ETCH_SLICER_LAB_BUILD_H
#define ETCH_SLICER_LAB_BUILD_H

#include "base/error.h"

struct etch_lab_build {
    const char *program;
    const char *runtime;  /* etch-lab.o */
    const char *recorder; /* etch-lab-soft.o */
    const char *folder;   /* objects and the twin go there; it exists */
    const char *twin;     /* the file to make */
};

/* Makes the twin. Returns 0, or -1 with `err` set. */
int etch_lab_build(const struct etch_lab_build *build, struct etch_error *err);

#endif
