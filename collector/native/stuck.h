/* SPDX-License-Identifier: MIT */
/* Whether a process waits for itself alone, for ever: so that a hang need not be waited for. A process that something
 * else might wake, or of which that cannot be told, is not stuck. */
#ifndef ETCH_COLLECTOR_NATIVE_STUCK_H
#define ETCH_COLLECTOR_NATIVE_STUCK_H

#include "collector/session/process.h"

/* Whether a wait can be ended by the thread's own process only: for a futex without a time limit, in memory that no
 * other process can have a part in. `mappings` are the process's. */
bool etch_wait_is_own(const struct etch_thread_wait *wait, const struct etch_mappings *mappings);

/* Whether a handler is set for a signal that somebody outside might send. */
bool etch_signals_may_wake(const struct etch_process_status *status);

/* One look at a process. True where each of its threads sleeps so, and there is no child, no timer, no handler for a
 * signal and no ring of the kernel's that might end it. `print` is of the threads and all that they have done: two
 * looks with the same print show that none ran in between. */
bool etch_stuck_look(pid_t pid, uint64_t *print);

/* Whether code of the process can set an alarm, which nothing in /proc tells of once it is set. Reads the program and
 * its libraries. */
bool etch_stuck_has_alarm(pid_t pid);

#endif
