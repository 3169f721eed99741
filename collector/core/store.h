/* SPDX-License-Identifier: MIT */
/* The folder of kept cores. NAME.core is a core, NAME.etch a bundle about its process, NAME.exe the program if it is
 * found nowhere else, NAME.pt.etch the trace of a process whose rings were kept. */
#ifndef ETCH_COLLECTOR_CORE_STORE_H
#define ETCH_COLLECTOR_CORE_STORE_H

#include "base/error.h"
#include "collector/core_keep.h"

/* Makes the folder for its owner alone. Returns 0, or -1 with `err` set: also if others can write to it. */
int core_store_make(const char *folder, struct etch_error *err);

/* Removes the oldest cores beyond the bounds, but never NAME. */
void core_store_prune(const struct etch_core_place *place, const char *name);

/* Bytes that the folder may take now: half of the free space of its file system. */
uint64_t core_store_room(const char *folder);

/* "FOLDER/NAMEsuffix". */
void core_store_path(char path[4096], const char *folder, const char *name, const char *suffix);

#endif
