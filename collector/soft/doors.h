/* SPDX-License-Identifier: MIT */
/* Private to the collector: the modules of a running process that have a recorder, and their plain copies. */
#ifndef ETCH_COLLECTOR_SOFT_DOORS_H
#define ETCH_COLLECTOR_SOFT_DOORS_H

#include "collector/session/process.h"
#include "proto/soft_layout.h"

/* A plain copy that can lead to recorded code. */
struct etch_soft_detour {
    uint64_t address;
    uint16_t bytes; /* its first two, as the file has them */
};

struct etch_soft_doors {
    ETCH_ARRAY(struct etch_soft_door) list;
    ETCH_ARRAY(struct etch_soft_detour) detours;
    uint32_t replaced; /* modules whose file is not the one that was loaded */
    uint32_t others;   /* modules of another version of etch, or that have not begun yet */
};

/* Finds them. Nothing in the process is changed. Returns 0, or -1 with `err` set. */
int etch_soft_doors_find(struct etch_soft_doors *doors, pid_t pid, const struct etch_mappings *mappings,
                         struct etch_error *err);
void etch_soft_doors_release(struct etch_soft_doors *doors);

/* Opens the file behind a mapping, if it is still the one that was mapped. Returns a descriptor, or -1. */
int etch_soft_open_mapped(pid_t pid, const struct etch_mapping *mapping);

#endif
