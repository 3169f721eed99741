/* SPDX-License-Identifier: MIT */
/* Facts about a process that the kernel is writing a core of. They are in /proc only until the last byte of the core is
 * read. Nothing of the program or of its memory is parsed: the handler runs as root. */
#ifndef ETCH_COLLECTOR_CORE_DYING_H
#define ETCH_COLLECTOR_CORE_DYING_H

#include "base/array.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct core_dying_thread {
    uint32_t tid; /* as the process saw it */
    char name[32];
};

struct core_dying {
    char exe[4096], cwd[4096], rings[4096];
    char command[8192]; /* the arguments, each with its NUL */
    size_t command_size;
    char name[32];
    int exe_fd;             /* keeps the file, also if its container is gone; -1: none */
    bool exe_elsewhere;     /* the path leads to another file here: a container, or the file was replaced */
    uint64_t start_unix_ns; /* 0: not known */
    uint32_t pid_namespace; /* inode; 0: not known */
    ETCH_ARRAY(struct core_dying_thread) threads;
};

/* Looks at process `pid` of the initial namespace. What cannot be read stays empty. */
void core_dying_look(struct core_dying *dying, pid_t pid);
void core_dying_release(struct core_dying *dying);

#endif
