/* SPDX-License-Identifier: MIT */
/* A folder in memory, shared with the recorded program, that does not outlive its etch for long: one whose etch was
 * killed is removed by the next. */
#ifndef ETCH_COLLECTOR_FOLDER_H
#define ETCH_COLLECTOR_FOLDER_H

#include "base/error.h"

#define ETCH_FOLDER_SIZE 64u

/* Returns 0, or -1 with `err` set and an empty name. */
int etch_folder_make(char folder[ETCH_FOLDER_SIZE], struct etch_error *err);

/* With the files in it. */
void etch_folder_remove(const char *folder);

#endif
