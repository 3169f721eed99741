/* SPDX-License-Identifier: MIT */
/* Whether functions return values, from debug information. */
#ifndef ETCH_BINARY_RETURNS_H
#define ETCH_BINARY_RETURNS_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the function at `address`, as the file's own symbols count it, is to return a value. False: it is not, or
 * nothing is known of it: no debug information in the file, or the file is not the one that ran. */
bool etch_returns_value(const Etch__Image *image, uint64_t address);

#endif
