/* SPDX-License-Identifier: MIT */
/* Runs a program and records it into a bundle. The program keeps its own input, output, status and signals; the bundle
 * is whole on exit, crash and kill alike, and readable up to the last moment if etch itself is killed. */
#ifndef ETCH_COLLECTOR_RECORD_H
#define ETCH_COLLECTOR_RECORD_H

#include "base/error.h"
#include "collector/elf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_RECORD_MAX_WATCHES 64u

struct etch_record_options {
    const char *output;
    const char *source;                           /* "vpt" or "auto" */
    char *const *argv;                            /* NULL at the end */
    const char *watches[ETCH_RECORD_MAX_WATCHES]; /* NAME or ADDRESS:LENGTH, perhaps with :r, :w or :rw behind it */
    size_t n_watches;
    const char *truth; /* folder for the truth log; NULL: none */
    uint64_t snapshot; /* keep the newest bytes of each thread only; 0: all */
};

struct etch_record_summary {
    const char *source;
    int status; /* as waitpid has it */
    uint64_t threads, processes, flow_bytes, accesses, bundle_bytes;
    uint64_t losses, lost_bytes;
    char loss[200]; /* the first one's words */
    bool failed;
    uint32_t failure_signal, failure_tid;
    bool failure_placed; /* the next two are known */
    uint64_t failure_ip, failure_address;
    bool failure_address_known;
};

/* One parsed watch. */
struct etch_record_watch {
    char name[256]; /* a variable, or empty */
    uint64_t address;
    uint64_t size; /* 0: the variable's own */
    bool reads, writes;
};

int etch_record_watch_parse(struct etch_record_watch *watch, const char *text, struct etch_error *err);

/* Returns 0 when the program ran and was recorded, whatever became of it (`summary` says); -1 with `err` set where etch
 * failed. `summary->status` is set as soon as the program ran. */
int etch_record(const struct etch_record_options *options, struct etch_record_summary *summary, struct etch_error *err);

#endif
