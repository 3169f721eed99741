/* SPDX-License-Identifier: MIT */
/* The run store. It lists the runs of a program, how each ended, under which plan, and its bundle. It is in SQLite, so
 * that a diagnosis continues after an earlier or a killed diagnosis. */
#ifndef ETCH_DIAGNOSE_STORE_H
#define ETCH_DIAGNOSE_STORE_H

#include "base/error.h"
#include "sketch/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_store;

struct etch_store_run {
    int64_t id;
    char bundle[64]; /* its name within the store's folder; empty: it was not kept, the run only counts */
    enum etch_verdict verdict;
    uint32_t sigma; /* 0: nothing was watched */
    double seconds;
};

/* Opens the store in `folder`, and makes the folder if necessary; `fresh`: removes its contents first. If nobody else
 * has the store open, also removes recordings of unfinished runs, which a killed etch left. Returns 0, or -1 with `err`
 * set. */
int etch_store_open(struct etch_store **store, const char *folder, bool fresh, struct etch_error *err);
void etch_store_close(struct etch_store *store);

/* A number that no other run of the store has. Returns -1 with `err` set where the store cannot be written. */
int64_t etch_store_reserve(struct etch_store *store, struct etch_error *err);

int etch_store_add(struct etch_store *store, const struct etch_store_run *run, struct etch_error *err);

/* Calls `visit` for each run, oldest first; a return other than 0 ends it and is returned. */
int etch_store_list(struct etch_store *store, int (*visit)(void *context, const struct etch_store_run *run),
                    void *context, struct etch_error *err);

#endif
