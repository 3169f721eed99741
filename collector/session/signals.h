/* SPDX-License-Identifier: MIT */
/* Signals to etch during a recording. The signals are meant for the program: etch passes them on and goes on
 * recording. */
#ifndef ETCH_COLLECTOR_SESSION_SIGNALS_H
#define ETCH_COLLECTOR_SESSION_SIGNALS_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct etch_signals {
    int fd;      /* readable when a signal has come; -1: not taken */
    bool unseen; /* nobody calls etch_signals_seen(): the program runs in QEMU */
    sigset_t mask, mask_before;
    struct sigaction child_before;
    struct {
        uint64_t seen_ns;
        uint64_t due_ns; /* 0: none waits */
        pid_t seen_from, due_from;
    } passing[65];
};

/* Blocks the signals and makes `fd`. `unseen`: etch does not see the signals that the program gets. SIGINT and SIGQUIT
 * are then not passed on, because a sender usually means the whole group. All other signals are passed on at once. The
 * stop signals are not taken, and SIGCHLD ends a wait instead of making `fd` readable. Returns 0, or -1 with `err` set;
 * etch_signals_give_back() is due in both cases. */
int etch_signals_take(struct etch_signals *signals, bool unseen, struct etch_error *err);

/* As they were before. A signal that came for the program does not end etch. */
void etch_signals_give_back(struct etch_signals *signals);

/* Reports a signal that the program got. The same signal from the same sender is then not passed on. */
void etch_signals_seen(struct etch_signals *signals, const siginfo_t *info);

/* Takes all that have come. `pid` is a program that etch started, or 0. Returns true if `pid` is 0 and a signal asks
 * etch to end. */
bool etch_signals_read(struct etch_signals *signals, pid_t pid);

/* Passes on the signals that have waited long enough. */
void etch_signals_pass_on(struct etch_signals *signals, pid_t pid);

/* Returns true if a signal waits to be passed on. */
bool etch_signals_wait(const struct etch_signals *signals);

#endif
