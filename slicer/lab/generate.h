/* SPDX-License-Identifier: MIT */
/* Private: the machine code of a lab build's module. */
#ifndef ETCH_SLICER_LAB_GENERATE_H
#define ETCH_SLICER_LAB_GENERATE_H

#include "base/error.h"

#include <llvm-c/Core.h>
#include <stdbool.h>

struct etch_lab_generate {
    const char *clang;
    const char *object; /* the file to make; temporary files are beside it */
    bool optimised;
};

/* Gives the functions of a module the software recorder, and generates code. The module's calls of the lab are in place
 * already. Returns 0, or -1 with `err` set. */
int etch_lab_generate(LLVMModuleRef module, const struct etch_lab_generate *about, struct etch_error *err);

#endif
