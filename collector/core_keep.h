/* SPDX-License-Identifier: MIT */
/* etch as the kernel's handler of cores (core_pattern): a folder of the newest cores, each with a small bundle about
 * its process. The handler before etch gets the same bytes. */
#ifndef ETCH_COLLECTOR_CORE_KEEP_H
#define ETCH_COLLECTOR_CORE_KEEP_H

#include "base/array.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define ETCH_CORE_FOLDER "/var/lib/etch/core"
#define ETCH_CORE_SIZE_MAX ((uint64_t)1 << 30)  /* of one core, unless another bound is asked for */
#define ETCH_CORE_TOTAL_MAX ((uint64_t)4 << 30) /* of all, on the disk */
#define ETCH_CORE_KEPT 16u

struct etch_core_place {
    const char *folder;
    uint64_t max_size, max_total;
    uint32_t keep;
};

/* What the kernel says about the process. */
struct etch_core_dump {
    int pid, own_pid; /* in the initial namespace, and in its own */
    int signal;
    uint64_t unix_s;
    const char *exe; /* with ! for each /, as the kernel has it; NULL: not given */
};

/* Reads a core from standard input and keeps it. `then` is the former handler with its arguments; NULL: none. The
 * former handler gets every byte, whatever becomes of etch's own copy, and the process stays until that handler has
 * ended. `path` gets the name of the core. Returns 0, or -1 with `err` set if the core was not kept. */
int etch_core_receive(const struct etch_core_place *place, const struct etch_core_dump *dump, char *const *then,
                      char path[4096], struct etch_error *err);

/* A kept core. */
struct etch_core_kept {
    char path[4096]; /* of the core */
    char name[64];   /* of the process */
    char *command, *rings, *exe;
    uint32_t pid, outer_pid, signal;
    uint64_t end_unix_ns, size; /* size on the disk */
    bool cut;                   /* the core was larger than a bound, or the disk was full */
    bool has_exe;               /* the program lies beside it */
    bool has_trace;             /* and the trace of Intel PT, by etch record --for-cores */
};

struct etch_core_list {
    ETCH_ARRAY(struct etch_core_kept) list; /* the newest first */
};

/* Returns 0, or -1 with `err` set. A folder that is not there is an empty list. */
int etch_core_list(struct etch_core_list *list, const char *folder, struct etch_error *err);
void etch_core_list_release(struct etch_core_list *list);

/* ---- core_pattern ---- */

/* The file with the kernel's pattern; another one for tests. */
#define ETCH_CORE_PATTERN "/proc/sys/kernel/core_pattern"

struct etch_core_pattern {
    char former[256], now[256];
};

/* Makes etch the handler. `options` stand behind "etch core". The pattern before is kept in `folder`, and etch passes
 * cores on to it if it is a handler. With `check` nothing is changed. Returns 0, or -1 with `err` set. */
int etch_core_install(struct etch_core_pattern *pattern, const char *file, const char *folder, const char *options,
                      bool check, struct etch_error *err);

/* Puts back the pattern that was there before. */
int etch_core_uninstall(struct etch_core_pattern *pattern, const char *file, const char *folder, bool check,
                        struct etch_error *err);

#endif
