/* SPDX-License-Identifier: MIT */
/* How the synchronisation library gets into a program: where it is, and what the environment must say. */
#ifndef ETCH_COLLECTOR_SYNC_PRELOAD_H
#define ETCH_COLLECTOR_SYNC_PRELOAD_H

#include "collector/sync/reader.h"

#include <stdbool.h>
#include <stddef.h>

/* Beside etch itself, or where it is installed. */
bool etch_sync_library_find(char *path, size_t size);

/* NAME=VALUE words; `before` is empty where LD_PRELOAD was not set. */
struct etch_sync_words {
    char preload[8300], sync[64], before[4200];
};

void etch_sync_words_make(struct etch_sync_words *words, const char *library, const struct etch_sync_reader *reader);

#endif
