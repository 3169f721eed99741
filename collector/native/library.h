/* SPDX-License-Identifier: MIT */
/* Private to native*.c: the libraries that a plan has watches in. */
#ifndef ETCH_COLLECTOR_NATIVE_LIBRARY_H
#define ETCH_COLLECTOR_NATIVE_LIBRARY_H

#include "binary/object.h"
#include "collector/native/native.h"

int etch_native_libraries_take(struct native *n, const Etch__Plan *plan, struct etch_error *err);

/* The library that an address of the plan is of; NULL: the program itself. */
const struct native_library *etch_native_library_of(const struct native *n, uint64_t address);

/* Finds the library in the process. Returns 0 with `object` to be freed, or -1 with `err` set. */
int etch_native_library_locate(const struct native *n, const struct native_library *library,
                               struct etch_object **object, uint64_t *bias, struct etch_error *err);

/* The address of the program's own first instruction, which runs after the dynamic loader; 0: not known. */
uint64_t etch_native_entry(pid_t pid);

#endif
