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
    uint64_t bytes;    /* of chunks */
    uint64_t ringless; /* threads that got no ring */
    uint32_t others;   /* processes built with another version of etch */
};

/* Hands all rings of a folder to `sink`: streams and their bytes, threads, and the images of processes other than
 * `known` (0: of all). Bytes are not trusted: a file that makes no sense is passed over. Returns 0, or -1 with `err`
 * set where the folder cannot be read or the sink stopped. */
int etch_soft_collect(const char *folder, uint32_t known, const struct etch_soft_sink *sink,
                      struct etch_soft_summary *summary, struct etch_error *err);

/* A bundle of what a program left behind that ran with ETCH_RING, without etch. */
int etch_soft_bundle(const char *folder, const char *output, struct etch_soft_summary *summary, struct etch_error *err);

#endif
