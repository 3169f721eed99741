/* SPDX-License-Identifier: MIT */
/* Tells from debug information if a function returns a value. */
#ifndef ETCH_BINARY_RETURNS_H
#define ETCH_BINARY_RETURNS_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* Does the function at `address`, an address of the file's own symbols, return a value? False: the function returns
 * none, or nothing is known: the file has no debug information, or is not the file that ran. */
bool etch_returns_value(const Etch__Image *image, uint64_t address);

#endif
