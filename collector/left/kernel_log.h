/* SPDX-License-Identifier: MIT */
/* The kernel's word about processes that it killed because memory was short. A process cannot note that itself. */
#ifndef ETCH_COLLECTOR_LEFT_KERNEL_LOG_H
#define ETCH_COLLECTOR_LEFT_KERNEL_LOG_H

#include "base/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_kernel_kill {
    uint32_t pid; /* in the initial PID namespace */
    char name[16];
    bool group; /* a memory cgroup had its limit; else the machine was out of memory */
    uint64_t boot_ns;
};

typedef ETCH_ARRAY(struct etch_kernel_kill) etch_kernel_kills;

/* Parses one record of /dev/kmsg. Returns false if it is of something else. */
bool etch_kernel_log_parse(const char *record, size_t size, struct etch_kernel_kill *kill);

/* Reads the kernel's log, as far as it is there and may be read. */
void etch_kernel_log_read(etch_kernel_kills *kills);

/* The kill of a process of that number, name and start, the newest; NULL: the log has none. `start_unix_ns` may be that
 * of an ancestor. */
const struct etch_kernel_kill *etch_kernel_log_find(const etch_kernel_kills *kills, uint32_t pid, const char *name,
                                                    uint64_t start_unix_ns);

#endif
