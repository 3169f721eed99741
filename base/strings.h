/* SPDX-License-Identifier: MIT */
/* Each string once, known by a small number; and a map from addresses to small numbers. */
#ifndef ETCH_BASE_STRINGS_H
#define ETCH_BASE_STRINGS_H

#include "base/array.h"

#include <stddef.h>
#include <stdint.h>

#define ETCH_NONE UINT32_MAX

struct etch_strings {
    ETCH_ARRAY(char *) all; /* number -> text */
    uint32_t *slots;
    size_t n_slots;
};

/* The number of `text`, a new one where it was not known. ETCH_NONE when memory is short. */
uint32_t etch_strings_add(struct etch_strings *strings, const char *text);

/* The number of `text`, ETCH_NONE where it is not there. */
uint32_t etch_strings_find(const struct etch_strings *strings, const char *text);

void etch_strings_release(struct etch_strings *strings);

struct etch_pointers {
    const void **keys;
    uint32_t *values;
    size_t n, n_slots;
};

/* False when memory is short. */
bool etch_pointers_set(struct etch_pointers *map, const void *key, uint32_t value);

/* ETCH_NONE where it is not there. */
uint32_t etch_pointers_get(const struct etch_pointers *map, const void *key);

void etch_pointers_release(struct etch_pointers *map);

#endif
