/* SPDX-License-Identifier: MIT */
/* A part of a global variable, by the program's own debug information: name.field, name[3].x, pointer->field. */
#ifndef ETCH_BINARY_VARIABLE_H
#define ETCH_BINARY_VARIABLE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct etch_variable {
    char name[256];   /* of the global */
    bool dereference; /* the part is in what the global points to */
    uint64_t offset;  /* of the part */
    uint64_t size;
};

/* Does the text have a part behind the name that needs types, such as a field or an index? */
bool etch_variable_has_parts(const char *text);

/* Finds the part in the debug information of the file. Returns 0, or -1 with `err` set. */
int etch_variable_find(struct etch_variable *variable, const char *path, const char *text, struct etch_error *err);

#endif
