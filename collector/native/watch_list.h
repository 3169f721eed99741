/* SPDX-License-Identifier: MIT */
/* Which locations a native recording watches, and in which of several sets. */
#ifndef ETCH_COLLECTOR_NATIVE_WATCH_LIST_H
#define ETCH_COLLECTOR_NATIVE_WATCH_LIST_H

#include "collector/native/native.h"

/* Fills the list from --watch or --plan. Returns 0, or -1 with `err` set. */
int etch_native_watches_choose(struct native *n, struct etch_error *err);

/* The set of this run: as told, or the next after the run that the output file holds. */
void etch_native_set_choose(struct native *n);

#endif
