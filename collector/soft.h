/* SPDX-License-Identifier: MIT */
/* The software recorder's rings, on etch's side: a folder for the rings, and reading them after the program's end or
 * crash. The program itself writes the rings (collector/soft/runtime.c). */
#ifndef ETCH_COLLECTOR_SOFT_H
#define ETCH_COLLECTOR_SOFT_H

#include "collector/sink.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true if the file is an ELF file with this section. */
bool etch_soft_has_section(const char *path, const char *section);

/* Returns true if the file was built with etch cc --record. */
bool etch_soft_is_recorded(const char *path);

struct etch_soft_summary {
    uint32_t processes, threads;
    uint64_t bytes;  /* of chunks */
    uint32_t others; /* processes built with another version of etch */
    uint32_t told;   /* losses that the rings report */
    const char *why; /* the first of them */
    bool untimed;    /* a recorded program may not read the time */
    uint64_t losses; /* of a bundle, by its ledger */
    char lost[400];  /* which, or "nothing" */
};

/* Hands all rings of a folder to `sink`: streams and their bytes, threads, and the images of processes other than
 * `known` (0: of all). Bytes are not trusted: a file that cannot be parsed is skipped. Files of other users are left
 * out, and a log line says so. A file is accepted if its owner is the caller. A file of the folder's owner is accepted
 * too if nobody else can write to the folder. Returns 0, or -1 with `err` set if the folder cannot be read. */
int etch_soft_collect(const char *folder, uint32_t known, const struct etch_sink *sink,
                      struct etch_soft_summary *summary, struct etch_error *err);

#endif
