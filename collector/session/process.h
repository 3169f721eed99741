/* SPDX-License-Identifier: MIT */
/* Facts about a running process from /proc: its mappings, its threads, its signal actions, its CPU time. Every fact may
 * be stale by the time of its use, and the process may be gone. */
#ifndef ETCH_COLLECTOR_SESSION_PROCESS_H
#define ETCH_COLLECTOR_SESSION_PROCESS_H

#include "base/array.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct etch_mapping {
    uint64_t start, end, offset;
    uint32_t prot;  /* PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4 */
    uint64_t inode; /* 0: no file behind it */
    bool shared;    /* with other processes that map the same */
    char *path;     /* "" for anonymous memory */
};

struct etch_mappings {
    ETCH_ARRAY(struct etch_mapping) list; /* by address */
};

/* A small file of /proc as a string. Returns its length, or -1. */
ssize_t etch_process_text(const char *path, char *text, size_t size);

/* One line of /proc/PID/maps; `path` points into `line`. False if `line` has another format. */
bool etch_mapping_parse(char *line, struct etch_mapping *mapping);

/* Returns 0, or -1 with `err` set if the process is gone or may not be inspected. */
int etch_process_mappings(pid_t pid, struct etch_mappings *mappings, struct etch_error *err);

void etch_mappings_release(struct etch_mappings *mappings);

/* NULL if nothing is mapped at `address`. */
const struct etch_mapping *etch_mappings_at(const struct etch_mappings *mappings, uint64_t address);

struct etch_tids {
    ETCH_ARRAY(pid_t) list;
};

/* The threads of a process, in /proc's order. Returns 0, or -1 if the process is gone. */
int etch_process_threads(pid_t pid, struct etch_tids *tids);

struct etch_process_status {
    pid_t pid;    /* thread group */
    pid_t tracer; /* 0: nobody */
    char state;   /* 'R', 'S', 'T', ... */
    uint64_t blocked, ignored, caught;
    uint64_t switches; /* how often another thread ran in its place */
};

/* From the text of /proc/PID/task/TID/status. */
void etch_process_status_parse(const char *text, struct etch_process_status *status);

/* Reads the status of a thread. Returns 0, or -1 if the thread is gone. */
int etch_process_status(pid_t pid, pid_t tid, struct etch_process_status *status);

/* Returns true if the default action of the signal means a fault of the process, rather than a request to end. */
bool etch_signal_is_failure(int signal);

/* Returns true if the signal would end the process now: the process neither catches nor ignores the signal. */
bool etch_signal_is_fatal(const struct etch_process_status *status, int signal);

/* CPU time of the existing threads in nanoseconds. The sum changes whenever a thread runs. */
uint64_t etch_process_ran_ns(pid_t pid);

/* The thread's name; empty if the thread is gone. */
void etch_thread_name(pid_t pid, pid_t tid, char name[32]);

struct etch_thread_wait {
    uint32_t call_plus_1; /* 0: running, or not known */
    uint64_t arguments[6];
    uint64_t sp, pc; /* 0: not known */
};

/* The system call in which a thread waits, from the text of /proc/PID/task/TID/syscall. */
void etch_thread_wait_parse(const char *text, struct etch_thread_wait *wait);
void etch_thread_wait(pid_t pid, pid_t tid, struct etch_thread_wait *wait);

/* Copies memory of the process. Returns how many bytes could be read, from `address` on. */
size_t etch_process_read(pid_t pid, uint64_t address, void *buffer, size_t size);

/* "/proc/PID/exe" resolved; empty if the process is gone. */
void etch_process_exe(pid_t pid, char *path, size_t size);

/* The same of "/proc/PID/cwd". */
void etch_process_cwd(pid_t pid, char *path, size_t size);

/* The build-id of a file as that process sees it. Returns its length; 0 if the file has no build-id or cannot be
 * read. */
size_t etch_process_build_id(pid_t pid, const char *path, uint8_t id[64]);

/* The number of perf events that the process itself holds open. A process with perf events may use hardware breakpoints
 * of its own. */
int etch_process_perf_events(pid_t pid);

#endif
