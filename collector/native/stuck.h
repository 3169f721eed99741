/* SPDX-License-Identifier: MIT */
/* Detects a process that only waits for itself, forever. Etch then need not wait for the time limit of a hang. A
 * process is not stuck if something else might wake it, or if this is not known. */
#ifndef ETCH_COLLECTOR_NATIVE_STUCK_H
#define ETCH_COLLECTOR_NATIVE_STUCK_H

#include "collector/session/process.h"

/* Returns true if only the thread's own process can end the wait. Such a wait is for a futex without a time limit, in
 * memory that no other process can share. `mappings` are the process's. */
bool etch_wait_is_own(const struct etch_thread_wait *wait, const struct etch_mappings *mappings);

/* Returns true if the process handles a signal that might come from outside the process. */
bool etch_signals_may_wake(const struct etch_process_status *status);

/* Looks at a process once. Returns true if every thread waits for its own process only, and no child, timer, signal
 * handler or io_uring might end a wait. `print` is a hash of the threads, their waits and their scheduling counts. Two
 * looks with the same print show that no thread ran in between. */
bool etch_stuck_look(pid_t pid, uint64_t *print);

/* Returns true if code of the process can set an alarm. /proc does not show a set alarm. Reads the program and its
 * libraries. */
bool etch_stuck_has_alarm(pid_t pid);

#endif
