/* SPDX-License-Identifier: MIT */
/* Processes that ran with ETCH_RING, without etch: who they were, how they ended, and a bundle of each. The programs
 * wrote the files, and nothing in them is trusted. */
#ifndef ETCH_COLLECTOR_RING_PROCESS_H
#define ETCH_COLLECTOR_RING_PROCESS_H

#include "base/array.h"
#include "collector/soft.h"

enum etch_ring_end {
    ETCH_RING_RUNS,      /* a thread of the process holds its ring */
    ETCH_RING_EXITED,    /* with `status` */
    ETCH_RING_SIGNALLED, /* by the signal `status`; the process noted the failure */
    ETCH_RING_NO_MEMORY, /* by SIGKILL, because memory was short: the kernel's log says so */
    ETCH_RING_SILENT,    /* gone without a word: by SIGKILL, another signal that is not noted, _exit or exec */
};

struct etch_ring_process {
    char file[256];         /* the file of rings in the folder; children of fork() share the file of their parent */
    uint32_t pid;           /* as the process saw it */
    uint32_t pid_namespace; /* inode; 0: not known */
    bool child;
    enum etch_ring_end end;
    uint32_t status;
    bool no_group_memory;   /* of ETCH_RING_NO_MEMORY: its memory cgroup was at the limit; else the machine's memory */
    uint64_t start_unix_ns; /* of a child: of its parent, and then by TSC */
    uint64_t start_tsc;
    uint32_t threads; /* rings */
    char exe[1024];   /* "": not known */
    uint8_t build_id[36];
    uint32_t build_id_size; /* 0: not known */
};

struct etch_ring_processes {
    ETCH_ARRAY(struct etch_ring_process) list; /* the oldest first */
    uint32_t empty;                            /* processes that found no room for rings */
    uint32_t others;                           /* files of another version of etch */
    uint32_t unreadable;                       /* files that cannot be read or make no sense */
};

/* Lists the processes of a folder. Returns 0, or -1 with `err` set if the folder cannot be read. */
int etch_ring_processes_read(const char *folder, struct etch_ring_processes *processes, struct etch_error *err);

void etch_ring_processes_release(struct etch_ring_processes *processes);

/* True if the process failed: a signal, or a status other than 0. */
bool etch_ring_process_failed(const struct etch_ring_process *process);

struct etch_ring_bundle {
    const char *folder, *output;
    const char *program;          /* the program's file, which may have moved; NULL: where the process had it */
    const char *policy;           /* as in etch_policy_find() */
    bool family;                  /* also the rings of the other processes in the same file */
    const Etch__Failure *failure; /* from elsewhere, such as a core file; NULL: the process's own note, if any */
};

/* Makes a bundle of one process. Returns 0, or -1 with `err` set. */
int etch_ring_process_bundle(const struct etch_ring_process *process, const struct etch_ring_bundle *options,
                             struct etch_soft_summary *summary, struct etch_error *err);

#endif
