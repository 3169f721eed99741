/* SPDX-License-Identifier: MIT */
/* The recorded program: started or joined by ptrace, then left alone. The tracer sees it begin, exec, make and end
 * threads, get a signal, and die; between those it does not stop. Nothing here outlives the tracer: if etch is killed,
 * even at the worst moment, the program goes on and no signal of its own is lost. */
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

/* Whether it is a SIGTRAP that a debug register of etch's may have caused: perf's own, or one that came without its
 * cause. */
bool etch_trap_is_ours(const siginfo_t *info);

struct etch_target_thread {
    pid_t tid;
    pid_t parent;       /* 0: not seen */
    uint64_t start_tsc; /* 0: before the recording */
    bool held;          /* stopped by etch_target_hold() */
    bool begun;         /* it was let go for the first time */
};

struct etch_target;

/* What the recorder is told. The thread named is stopped during the call. */
struct etch_target_watcher {
    void *context;
    /* A new program is in place and has not run an instruction; `first` for the one that was asked for. Returns -1 to
     * give up, which is possible at the first one only. */
    int (*exec)(void *context, struct etch_target *target, bool first);
    void (*thread_start)(void *context, struct etch_target *target, const struct etch_target_thread *thread);
    void (*thread_exit)(void *context, struct etch_target *target, const struct etch_target_thread *thread,
                        int wait_status);
    /* A signal is about to be delivered. Returns true to swallow it (only what etch itself caused). */
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
};

struct etch_launch {
    char *const *argv;
    const char *path; /* the file that argv[0] names */
    char *const *environment;
    const sigset_t *signal_mask;      /* as etch got it */
    bool sigchld_ignored;             /* as etch got it */
    const struct rlimit *descriptors; /* as etch got it; NULL: unchanged */
};

/* Starts a program, stopped before its first instruction; etch_target_pump() then reports the exec, if it has not done
 * so already. Returns 0, also where somebody killed it meanwhile (`gone`), or -1 with `err` set and nothing left
 * behind. */
int etch_target_launch(struct etch_target *target, const struct etch_launch *launch, struct etch_error *err);

/* Joins all threads of a running process without stopping any. Returns 0, or -1 with `err` set. */
int etch_target_attach(struct etch_target *target, pid_t pid, struct etch_error *err);

/* Handles everything that has happened; does not wait. Returns 0, or -1 with `err` set where the watcher gave up. */
int etch_target_pump(struct etch_target *target, struct etch_error *err);

/* Stops every thread but `except` for a look at its registers, waiting up to `ms`. A thread that cannot be stopped is
 * not held, and `gently` none that is in a system call which would tell the program of it (epoll_wait returns EINTR
 * after a stop; what sleeps or waits for a futex goes on as if nothing had been). */
void etch_target_hold(struct etch_target *target, pid_t except, unsigned ms, bool gently);

/* Lets those go. */
void etch_target_release_held(struct etch_target *target);

struct etch_target_thread *etch_target_thread(struct etch_target *target, pid_t tid);

void etch_target_free(struct etch_target *target);

#endif
