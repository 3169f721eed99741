/* SPDX-License-Identifier: MIT */
/* Private to the software recorder's runtime: a signal handler notes in the pool how the process dies. */
#ifndef ETCH_COLLECTOR_SOFT_DEATH_H
#define ETCH_COLLECTOR_SOFT_DEATH_H

#include "collector/soft/runtime.h"

/* At the start, on the first thread: installs the handler for the signals that are at their default, and gives the
 * thread an alternate stack unless it has one. `top` is the end of the first thread's stack. Returns the set of the
 * signals, by their bits. */
HIDDEN uint32_t etch_soft_watch_signals(uintptr_t top);

/* The program is about to enter a sandbox, where the handler's system calls may be forbidden: the default comes back.
 */
HIDDEN void etch_soft_leave_signals(void);

#endif
