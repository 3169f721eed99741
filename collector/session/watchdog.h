/* SPDX-License-Identifier: MIT */
/* A traced program waits for its tracer at every signal and every thread that it makes. So it would stand still as long
 * as etch does. A small process beside etch looks after it: where a thread waits for an etch that is stopped, it wakes
 * etch, which lets go of the program at once, says so in the bundle, and is stopped again; an etch that does not move
 * at all is killed, upon which the kernel lets go of the program. */
#ifndef ETCH_COLLECTOR_SESSION_WATCHDOG_H
#define ETCH_COLLECTOR_SESSION_WATCHDOG_H

#include <stdbool.h>
#include <sys/types.h>

#define ETCH_WATCHDOG_NAME "etch-watchdog"
#define ETCH_WATCHDOG_LOOK_MS                                                                                          \
    100u                            /* a thread that waits at two looks for an etch that is stopped has waited enough  \
                                     */
#define ETCH_WATCHDOG_HANG_MS 5000u /* for an etch that runs, or should, and has done nothing */

struct etch_watchdog;

/* Before there is a program, from the thread that lives longest. NULL where no process can be made: then nobody looks.
 */
struct etch_watchdog *etch_watchdog_start(void);

/* Whom to look at. */
void etch_watchdog_set_target(struct etch_watchdog *watchdog, pid_t pid);

/* Etch moves. NULL is fine here and below. */
void etch_watchdog_beat(struct etch_watchdog *watchdog);

/* Etch stops itself, together with the program: nobody waits. And goes on. */
void etch_watchdog_rest(struct etch_watchdog *watchdog, bool rests);

/* Whether etch was woken to let go. */
bool etch_watchdog_barked(const struct etch_watchdog *watchdog);

void etch_watchdog_end(struct etch_watchdog *watchdog);

#endif
