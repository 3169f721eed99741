/* SPDX-License-Identifier: MIT */
/* The software recorder's rings, on etch's side: a folder for them, and what they hold when the program is done, dead
 * or not. The program writes them itself (collector/soft/runtime.c). */
#ifndef ETCH_COLLECTOR_SOFT_H
#define ETCH_COLLECTOR_SOFT_H

#include "base/error.h"
#include "proto/bundle.h"

#include <stdbool.h>
#include <stdint.h>

/* Was the file made by etch cc --record? */
bool etch_soft_is_recorded(const char *path);

struct etch_soft_sink {
    void *context;
    /* Takes one record for the bundle. Returns 0, or -1 to stop. */
    int (*write)(void *context, Etch__Record__BodyCase kind, void *message);
    /* Takes bytes of a stream. */
    int (*flow)(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size);
};

struct etch_soft_summary {
    uint32_t processes, threads;
    uint64_t bytes;  /* of chunks */
    uint32_t others; /* processes built with another version of etch */
    uint32_t told;   /* losses that the rings tell of */
    const char *why; /* the first of them */
    bool untimed;    /* there is a program that may not read the time */
    uint64_t losses; /* of a bundle, by its ledger */
    char lost[400];  /* which, or "nothing" */
};

/* Hands all rings of a folder to `sink`: streams and their bytes, threads, and the images of processes other than
 * `known` (0: of all). Bytes are not trusted: a file that makes no sense is passed over. Files of other users are left
 * out, and a log line says so: those that belong neither to the caller nor to the owner of a folder that nobody else
 * can write to. Returns 0, or -1 with `err` set where the folder cannot be read or the sink stopped. */
int etch_soft_collect(const char *folder, uint32_t known, const struct etch_soft_sink *sink,
                      struct etch_soft_summary *summary, struct etch_error *err);

/* A bundle of what a program left behind that ran with ETCH_RING, without etch. `policy` as in etch_policy_find(). */
int etch_soft_bundle(const char *folder, const char *output, const char *policy, struct etch_soft_summary *summary,
                     struct etch_error *err);

#endif
