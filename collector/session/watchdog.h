/* SPDX-License-Identifier: MIT */
/* A traced program waits for its tracer at every signal and at every new thread. The program would therefore stand
 * still as long as etch does. A small watchdog process watches etch. If a thread waits and etch is stopped, the
 * watchdog wakes etch. Etch then detaches from the program at once, says so in the bundle, and stops again. If a thread
 * waits and etch makes no progress, the watchdog kills etch, and the kernel detaches the program. */
#ifndef ETCH_COLLECTOR_SESSION_WATCHDOG_H
#define ETCH_COLLECTOR_SESSION_WATCHDOG_H

#include <stdbool.h>
#include <sys/types.h>

#define ETCH_WATCHDOG_NAME "etch-watchdog"
#define ETCH_WATCHDOG_LOOK_MS                                                                                          \
    100u /* between two looks; a thread that waits for a stopped etch at two looks has waited long enough */
#define ETCH_WATCHDOG_HANG_MS 5000u /* an etch that is not stopped and makes no progress for so long is killed */

struct etch_watchdog;

/* Call before the program starts, from the thread that lives longest. NULL: no process could be made, and there is no
 * watchdog. */
struct etch_watchdog *etch_watchdog_start(void);

/* Sets the program to look at. */
void etch_watchdog_set_target(struct etch_watchdog *watchdog, pid_t pid);

/* Reports progress of etch. NULL is allowed here and below. */
void etch_watchdog_beat(struct etch_watchdog *watchdog);

/* `rests`: etch stops itself together with the program, and nobody waits. Else etch goes on. */
void etch_watchdog_rest(struct etch_watchdog *watchdog, bool rests);

/* Returns true if the watchdog woke etch to make it detach. */
bool etch_watchdog_barked(const struct etch_watchdog *watchdog);

void etch_watchdog_end(struct etch_watchdog *watchdog);

#endif
