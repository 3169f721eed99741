/* SPDX-License-Identifier: MIT */
/* Failures without a signal: the run took too long, no thread ran for too long, or all threads wait for each other. */
#ifndef ETCH_COLLECTOR_NATIVE_HANG_H
#define ETCH_COLLECTOR_NATIVE_HANG_H

#include "collector/native/native.h"

struct native_hang {
    uint64_t ran_ns, ran_changed_ns, started_ns;
    bool reported;
    uint64_t looked_ns, stuck_since_ns, stuck_print;
    bool can_be_woken; /* by an alarm */
};

/* Looks for a hang and writes the failure if there is one. Returns true if etch shall detach: etch did not start the
 * process, and the time to watch it is over. */
bool etch_native_hang_check(struct native *n, struct native_hang *hang, uint64_t now_ns);

#endif
