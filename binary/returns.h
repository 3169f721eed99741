/* SPDX-License-Identifier: MIT */
/* What debug information says of the function at an address: if it returns a value, and its parameters. */
#ifndef ETCH_BINARY_RETURNS_H
#define ETCH_BINARY_RETURNS_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does the function at `address`, an address of the file's own symbols, return a value? False: the function returns
 * none, or nothing is known: the file has no debug information, or is not the file that ran. */
bool etch_returns_value(const Etch__Image *image, uint64_t address);

/* The names of its parameters in their order, to be freed one by one. Returns how many were written to `names`, at most
 * `max`; 0 if nothing is known. */
size_t etch_parameters_list(const Etch__Image *image, uint64_t address, char **names, size_t max);

#endif
