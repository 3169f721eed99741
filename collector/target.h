/* SPDX-License-Identifier: MIT */
/* The recorded program: started or joined by ptrace, then left alone. The tracer sees the program's start, execs, new
 * and ended threads, signals and death. The program does not stop between these events. Nothing here outlives the
 * tracer: if etch is killed, even at the worst moment, the program goes on and no signal of its own is lost. */
#ifndef ETCH_COLLECTOR_TARGET_H
#define ETCH_COLLECTOR_TARGET_H

#include "base/array.h"
#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define ETCH_TRAP_PERF 6 /* si_code of perf's own SIGTRAP; libc's headers lack it yet */

/* Returns true if a debug register of etch may have caused the signal: perf's SIGTRAP, or a SIGTRAP with the si_code of
 * a breakpoint. */
bool etch_trap_is_ours(const siginfo_t *info);

struct etch_target_thread {
    pid_t tid;
    pid_t parent;       /* 0: not seen */
    uint64_t start_tsc; /* 0: before the recording */
    bool held;          /* stopped by etch_target_hold() */
    bool begun;         /* the thread was resumed for the first time */
};

struct etch_target;

/* Calls to the recorder. The thread in the arguments is stopped during the call. */
struct etch_target_watcher {
    void *context;
    /* A new program is in place and has not run an instruction; `first`: the new program is the requested program.
     * Returns -1 to give up, which is possible at the first exec only. */
    int (*exec)(void *context, struct etch_target *target, bool first);
    void (*thread_start)(void *context, struct etch_target *target, const struct etch_target_thread *thread);
    void (*thread_exit)(void *context, struct etch_target *target, const struct etch_target_thread *thread,
                        int wait_status);
    /* A signal is about to be delivered. Returns true to swallow the signal (only a signal that etch itself caused). */
    bool (*signal)(void *context, struct etch_target *target, pid_t tid, const siginfo_t *signal);
    /* The process stopped for job control by `signal`. */
    void (*stopped)(void *context, struct etch_target *target, int signal);
};

struct etch_target {
    pid_t pid;
    bool launched; /* by us, rather than joined */
    bool gone;
    int wait_status;     /* once it is gone */
    struct rusage usage; /* once it is gone */
    bool usage_known;
    ETCH_ARRAY(struct etch_target_thread) threads;
    uint64_t threads_seen;
    struct etch_target_watcher watcher;
    bool started; /* the first exec was seen */
    bool given_up;
    bool stopped; /* by job control; the kernel has not yet told that it goes on */
};

struct etch_launch {
    char *const *argv;
    const char *path; /* the file that argv[0] names */
    char *const *environment;
    const sigset_t *signal_mask;      /* as etch got it */
    bool sigchld_ignored;             /* as etch got it */
    const struct rlimit *descriptors; /* as etch got it; NULL: unchanged */
};

/* Starts a program, stopped before its first instruction; etch_target_pump() then reports the exec, unless the exec was
 * reported already. Returns 0, also if somebody killed the program meanwhile (`gone`), or -1 with `err` set and nothing
 * left behind. */
int etch_target_launch(struct etch_target *target, const struct etch_launch *launch, struct etch_error *err);

/* Joins all threads of a running process without stopping any. Returns 0, or -1 with `err` set. */
int etch_target_attach(struct etch_target *target, pid_t pid, struct etch_error *err);

/* Handles all pending events; does not wait. Returns 0, or -1 with `err` set if the watcher gave up. */
int etch_target_pump(struct etch_target *target, struct etch_error *err);

/* Stops every thread but `except` for a look at its registers, waiting up to `ms`. A thread that cannot be stopped is
 * not held. With `gently`, no thread is held in a system call that would show the stop to the program: epoll_wait
 * returns EINTR after a stop. A sleep or a futex wait goes on as before. */
void etch_target_hold(struct etch_target *target, pid_t except, unsigned ms, bool gently);

/* Stops every thread, and makes calls again that the stop ended early, such as epoll_wait. Returns 0, or -1 with `err`
 * set and no thread held, if a thread cannot be stopped. etch_target_release_held() resumes them. */
int etch_target_stop_all(struct etch_target *target, struct etch_error *err);

/* Resumes the held threads. */
void etch_target_release_held(struct etch_target *target);

void etch_target_free(struct etch_target *target);

#endif
