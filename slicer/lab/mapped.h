/* SPDX-License-Identifier: MIT */
/* Private: a file in memory. */
#ifndef ETCH_SLICER_LAB_MAPPED_H
#define ETCH_SLICER_LAB_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_lab_mapped {
    const uint8_t *bytes;
    size_t size;
};

/* False if the file cannot be read, or is empty. */
bool etch_lab_map(struct etch_lab_mapped *m, const char *path);
void etch_lab_unmap(struct etch_lab_mapped *m);

#endif
